"""What a fit leaves behind: model.json, report.json, report.html and a few lines of text."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from colonnade.core.errors import EXIT_OK, BadInput
from colonnade.party.fit import LocalModel
from colonnade.party.fit_order import LocalFit
from colonnade.privacy.accounting import format_upper_bound
from colonnade.report import FIT_FORMAT, VERSION, to_html

NOT_PRIVATE = "NOT PRIVATE: such noise is for experiments; publish nothing of this model."
NO_NOISE = (
    "Default settings are for private fits: without noise they may stop short, and clip too much."
)
NO_LEDGER = "none: another fit of these rows adds to this one; --ledger keeps the sum"
PATH_FEATURES = 40
"""The largest coefficients at the end are the ones whose path is kept."""

_MAX_PRINTED = 20


def finish(arguments: argparse.Namespace, fit: LocalFit, made: LocalModel) -> int:
    """Write the run folder and print what was done."""
    report = to_report(fit, made)
    files = _write(arguments.out, report, made)
    text = json.dumps(report) if arguments.json else _to_text(arguments.out, files, report, fit)
    print(text)
    return EXIT_OK


def to_report(fit: LocalFit, made: LocalModel) -> dict[str, Any]:
    """Return the report: releases, functions of them, and public declarations.

    Its keys: format, version; job_id (SHA-256 of the order), name, n_rows, loss, penalty,
    intercept, solver, settings (of the solver, by name); privacy (the claim, and statement: the
    same in a sentence); ledger (None without one); model (as in model.json); path (of the largest
    features: names, steps, and the scaled coefficients after each of those steps); moments (of the
    solver gram: L1 path, correlations and intervals, as in the report of a moments job).
    """
    order, charge = fit.order, made.charge
    return {
        "format": FIT_FORMAT,
        "version": VERSION,
        "job_id": made.job_id,
        "name": order.name,
        "n_rows": made.n_rows,
        "loss": order.loss,
        "penalty": order.penalty.to_object(),
        "intercept": order.intercept,
        "solver": repr(fit.resolved.solver),
        "settings": asdict(fit.resolved.solver),  # type: ignore[call-overload]
        "privacy": made.claim.to_object() | {"statement": _statement(made)},
        "ledger": None
        if charge is None
        else {
            "ledger_id": charge.ledger_id,
            "charged_now_rho": charge.charged_now,
            "left_rho": charge.left,
        },
        "model": made.model.to_object(),
        "path": _path(made),
        "moments": _moments(made),
    }


def _statement(made: LocalModel) -> str:
    claim = made.claim

    if not claim.private:
        return "Nothing is promised: the noise of this fit was not exact and secret."
    rest = (
        "Another fit on the same rows adds to it."
        if made.charge is None
        else f"It was charged in full to ledger {made.charge.ledger_id}, whose cap bounds the sum "
        "over all that it ever pays for."
    )
    return (
        "Replacing one row changes the distribution of this model, and of everything in this "
        f"report, by no more than epsilon {format_upper_bound(claim.epsilon, 6)} and delta "
        f"{claim.delta:.3g} allow. {rest}"
    )


def _moments(made: LocalModel) -> dict[str, Any] | None:
    if made.statistics is None:
        return None
    return made.statistics.summary([(each.party, each.name) for each in made.model.features])


def _path(made: LocalModel) -> dict[str, Any]:
    features = made.model.features
    order = sorted(range(len(features)), key=lambda j: -abs(features[j].coef_scaled))
    shown = order[:PATH_FEATURES]
    return {
        "features": [features[j].name for j in shown],
        "steps": [step for step, _ in made.trail],
        "coef": [[float(coef[j]) for j in shown] for _, coef in made.trail],
    }


def _write(out: Path, report: Mapping[str, Any], made: LocalModel) -> list[str]:
    """Write the files and return their names."""
    texts = {
        "model.json": made.model.to_json(),
        "report.json": json.dumps(report, indent=1, allow_nan=False) + "\n",
        "report.html": to_html(report),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (out / name).write_text(text, encoding="utf-8")
    except OSError as error:
        paid = "; its releases are in the ledger, so that another --out costs nothing more"
        raise BadInput(
            f"{out}: cannot write the model: {error.strerror}{paid if report['ledger'] else ''}"
        ) from None
    return list(texts)


def _to_text(out: Path, files: list[str], report: Mapping[str, Any], fit: LocalFit) -> str:

    privacy, ledger = report["privacy"], report["ledger"]
    features = sorted(report["model"]["features"], key=lambda each: -abs(each["coef_scaled"]))
    width = max(len("(intercept)"), *(len(each["name"]) for each in features))
    lines = [f"{out}: {', '.join(files)}"]
    shown, more = features[:_MAX_PRINTED], len(features) - _MAX_PRINTED
    lines += [f"  {each['name']:<{width}}  {each['coef']:>12.6g}" for each in shown]
    if more > 0:
        lines.append(f"  ... and {more} smaller ones")
    lines.append(f"  {'(intercept)':<{width}}  {report['model']['intercept']:>12.6g}")
    if not privacy["private"]:
        return "\n".join([*lines, NOT_PRIVATE, *([NO_NOISE] if fit.order.noise == "off" else [])])
    lines.append(
        f"privacy  epsilon {format_upper_bound(privacy['epsilon'])} at delta {privacy['delta']:g}, "
        f"{privacy['neighbours']}"
    )
    if ledger is None:
        return "\n".join([*lines, f"ledger   {NO_LEDGER}"])
    told = f"charged rho {ledger['charged_now_rho']:.6g}, left {ledger['left_rho']:.6g}"
    replayed = "" if ledger["charged_now_rho"] else "  (a replay; --name another for a new fit)"
    lines.append(f"ledger   {told}{replayed}")
    if privacy["amplified_epsilon"] is not None:
        amplified = format_upper_bound(privacy["amplified_epsilon"])
        lines.append(
            f"batches  epsilon {amplified} if nobody learns who "
            f"was in which (probability {privacy['sampling_rate']:.3g}); the charge takes no "
            "credit for that"
        )
    return "\n".join(lines)
