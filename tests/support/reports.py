"""Reports whose numbers nearly all differ, for tests of what is made of them."""

from collections.abc import Sequence
from typing import Any, cast

from colonnade.data.model import LinearModel, ModelFeature, ModelLabel
from colonnade.privacy.accounting import RHO_UNIT, epsilon_of, rho_of

HOSTILE = "$\\frac{$<script>alert('x')</script> & \"quoted\" --> ]]> \x00\x1b\ud800"
DELTA = 1e-6


def amount(units: int) -> dict[str, Any]:
    rho = units / RHO_UNIT
    return {"units": units, "rho": rho, "epsilon": epsilon_of(rho, DELTA)}


def costs(most: int, spent: int, bounds: int) -> dict[str, Any]:
    total = {"max": amount(most + bounds), "spent": amount(spent + bounds)}
    return {
        "max": amount(most),
        "spent": amount(spent),
        "bounds": amount(bounds),
        "total": total,
    }


def make_report(
    *,
    parties: Sequence[str] = ("hospital", "laboratory", "insurer"),
    n_features: int = 4,
    rounds: int = 5,
    done: int | None = None,
    name: str = "Length of stay",
    feature: str = "feature",
    bounds: int = 0,
    **changes: Any,
) -> dict[str, Any]:
    """Make a report whose numbers nearly all differ."""
    done = rounds if done is None else done
    most = int(rho_of(1.0, DELTA) * RHO_UNIT) // len(parties)
    select, share = most // (2 * rounds), most // (2 * rounds) - 1001
    rows, path, by_round = [], [], []
    coef = {party: [0.0] * n_features for party in parties}
    for round_ in range(done):
        for place, party in enumerate(parties):
            moved = [0.9 * value for value in coef[party]]
            moved[(round_ + place) % n_features] += 0.1 * (-1) ** round_ + 0.01 * place
            coef[party] = moved
            for kind, payload in (("select", 4), ("share", 1500 + 10 * round_ + place)):
                rows.append(
                    {
                        "round": round_,
                        "party": party,
                        "kind": kind,
                        "payload_bytes": payload,
                        "predicted_bytes": payload + round_ % 2,
                        "wire_bytes": payload + 57,
                        "messages": 1 + place,
                        "retry_bytes": 7 * place,
                    }
                )
        by_round.append({"round": round_, "spent": dict.fromkeys(parties, select + share)})
        path.append({"round": round_, "coef": {party: list(c) for party, c in coef.items()}})
    model = LinearModel(
        "ab" * 32,
        "squared",
        ModelLabel("stay", 0.0, 30.0),
        0.0625,
        tuple(
            ModelFeature(party, f"{feature} {place}", -1.5 * place, 10.0 + place, 5.0, value)
            for party in parties
            for place, value in enumerate(coef[party])
        ),
        private=True,
    )
    spent = done * (select + share)
    privacy: dict[str, Any] = {
        "delta": DELTA,
        "statement": "The promise in a sentence.",
        "bounds_note": "which bounds are used",
        "joint": costs(most * len(parties), spent * len(parties), bounds * len(parties)),
        "label": {**costs(most + 5, spent + 3, bounds), "who": "all hold it"},
        "parties": [
            {
                "party": party,
                **costs(most + place, spent + place, bounds),
                "cap": None if place == 1 else amount((3 + place) * most),
                "ledger_spent": None if place == 1 else amount(2 * most + place),
                "by_kind": [
                    {"kind": "select", "releases": done, "spent": amount(done * select)},
                    {"kind": "share", "releases": done + 50, "spent": amount(done * share)},
                ],
            }
            for place, party in enumerate(parties)
        ],
        "by_round": by_round,
    }
    sizes = ("payload_bytes", "predicted_bytes", "wire_bytes", "retry_bytes")
    report = {
        "format": "colonnade report",
        "version": 1,
        "job_id": "ab" * 32,
        "name": name,
        "method": "frank-wolfe",
        "state": "finished",
        "reason": "",
        "private": True,
        "submitted_at": "2025-03-04T10:11:12Z",
        "ended_at": "2025-03-04T10:13:40Z",
        "seconds": 148.25,
        "n_rows": 123_456,
        "loss": "squared",
        "labels": "shared",
        "rounds": {"planned": rounds, "done": done},
        "parameters": {"sketch_dim": 2048, "radius": 1.4375, "sampling": "all"},
        "privacy": privacy,
        "uplink": {key: sum(cast("int", row[key]) for row in rows) for key in sizes}
        | {"rows": rows},
        "model": model.to_object() if done else None,
        "path": path,
        "unused": [],
        "quality": None,
    }
    return report | changes


QUALITY = {
    "simulation_only": True,
    "metric": "auc",
    "ours": 0.7123,
    "nonprivate": 0.8456,
    "central": 0.7789,
    "by_round": [0.511, 0.622, 0.699, 0.706, 0.7123],
    "rows": "held-out",
    "n_rows": 4321,
    "central_is": "What the private reference is.",
    "nonprivate_is": "What the other reference is.",
}


def make_moments(
    parties: Sequence[str] = ("hospital", "laboratory", "insurer"),
    n_features: int = 4,
    *,
    feature: str = "feature",
    **changes: Any,
) -> dict[str, Any]:
    """Make the part of a moments job, with numbers that differ."""
    features = [
        {"party": party, "name": f"{feature} {place}"}
        for party in parties
        for place in range(n_features)
    ]
    size = len(features)
    coef = [0.3 * (-1) ** place / (1 + place) for place in range(size)]
    return {
        "features": features,
        "left_out": 0,
        "path": {
            "penalties": [0.4, 0.2, 0.1, 0.05],
            "coefs": [[strength * each for each in coef] for strength in (0.0, 0.3, 0.7, 1.0)],
            "chosen": 0.12,
        },
        "correlations": [
            [1.0 if i == j else 0.4 * (-1) ** (i + j) / (1 + i + j) for j in range(size + 1)]
            for i in range(size + 1)
        ],
        "intervals": {
            "level": 0.95,
            "coef": coef,
            "error": [0.01 + 0.001 * place for place in range(size)],
            "low": [each - 0.02 for each in coef],
            "high": [each + 0.02 for each in coef],
        },
        "explained": {"share": 0.7317, "error": 0.0613},
        **changes,
    }


def make_fit(
    *, n_features: int = 5, feature: str = "column", private: bool = True
) -> dict[str, Any]:
    """Make the report of a fit at one site."""
    coef = [0.5 / (place + 1) * (-1) ** place for place in range(n_features)]
    names = [f"{feature} {place}" for place in range(n_features)]
    model = LinearModel(
        "cd" * 32,
        "squared",
        ModelLabel("stay", 0.0, 30.0),
        0.0625,
        tuple(
            ModelFeature("local", name, 0.0, 10.0, 5.0, value)
            for name, value in zip(names, coef, strict=True)
        ),
        private=private,
    )
    step = {"kind": "step", "mechanism": "discrete_gaussian", "count": 40, "touches": 40}
    return {
        "format": "colonnade fit report",
        "version": 1,
        "job_id": "cd" * 32,
        "name": "fit",
        "n_rows": 3000,
        "loss": "squared",
        "penalty": {"l1": 0.0, "l2": 1e-6, "box": None},
        "intercept": True,
        "solver": "CoordinateDescent()",
        "settings": {"passes": 10, "clip": 0.5, "order": "cyclic"},
        "privacy": {
            "private": private,
            "epsilon": 4.99,
            "delta": DELTA,
            "rho": 0.463,
            "charged_rho": 0.463,
            "solver": "cd",
            "sampling_rate": 1.0,
            "releases": [step | {"sigma2": 9 * 2**50, "l2_sensitivity2": 2**50}],
            "neighbours": "one row replaced",
            "amplified_epsilon": None,
            "statement": "The promise of a fit.",
        },
        "ledger": None,
        "model": model.to_object(),
        "path": {
            "features": names,
            "steps": list(range(1, 41)),
            "coef": [[value * (1.0 - 0.9**step) for value in coef] for step in range(1, 41)],
        },
    }
