"""What a report says of a sealed job: on which promise each release rests, and what they tell.

Privacy: arithmetic on releases and public numbers (post-processing).
"""

import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.gram import onto_ball
from colonnade.linear.solutions import gram_summary, rounded
from colonnade.methods.base import Part
from colonnade.methods.moments.solver.people import people
from colonnade.methods.sealed.charges import MAX_KEY_BITS
from colonnade.methods.sealed.claims import EVERYBODY, PROMISE, promise_of, statement_of
from colonnade.methods.sealed.kinds import SEALED, parsed
from colonnade.methods.sealed.products import key_bits, peer_bits
from colonnade.methods.sealed.solver.calibration import explained
from colonnade.methods.sealed.solver.estimates import SealedEstimate
from colonnade.methods.sealed.solver.steps import SealedSolver, SealedState
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.privacy.accounting import epsilon_of, format_upper_bound, rho_from_units
from colonnade.report import state_promise

_LEVEL = 0.95
_BIAS = 0.02  # of a coefficient: what balls of rows and released deviations do to it


def sealed_section(spec: SealedSpec) -> dict[str, Any]:
    """Return the promise, and what each release rests on, as JSON values."""
    return {
        "experimental": True,
        "promise": PROMISE,
        "parties": [part.party for part in spec.parts],
        "buckets": spec.buckets if spec.summed else 0,
        "shields": {part.party: _shield_rho(spec, part) for part in spec.parts},
        "max_key_bits": MAX_KEY_BITS,
        "opened_bits": {part.party: key_bits(spec, part)[0] for part in spec.parts},
        "peer_bits": {part.party: peer_bits(spec, part) for part in spec.parts},
        "releases": [
            {
                "party": part.party,
                "kind": kind,
                "promise": promise_of(kind),
                "holds": statement_of(promise_of(kind)),
                "rho": rho_from_units(spec.cost(part.party, kind)),
            }
            for part in spec.parts
            for kind in spec.kinds(part)
        ],
    }


def _shield_rho(spec: SealedSpec, part: Part) -> float:
    """Return what peers that do not follow the protocol learn at most; 0 without a bound."""
    shield = spec.shield(part)
    return 0.0 if shield is None else rho_from_units(shield.cost)


def sealed_promise(spec: SealedSpec, delta: float, privacy: Mapping[str, Any]) -> str:
    """Return the promise of a sealed job in words, with its amounts."""
    names = ", ".join(part.party for part in spec.parts)
    alone = sum(
        spec.cost(part.party, kind)
        for part in spec.parts
        for kind in spec.kinds(part)
        if parsed(kind)[0] not in SEALED and promise_of(kind) == EVERYBODY
    )
    bits = ", ".join(f"{part.party} {peer_bits(spec, part)}" for part in spec.parts)
    premise = f"If {names} follow the protocol and everybody is computationally bounded,"
    usual = state_promise(privacy).removeprefix("Whatever all others do together,")
    usual = usual.replace("differentially private", "computationally differentially private", 1)
    epsilon = format_upper_bound(epsilon_of(rho_from_units(alone), delta))
    return (
        f"Experimental. {premise}{usual} Whatever all others do, means and Gram matrices alone "
        f"have epsilon at most {epsilon} together (bounds not counted); products between parties "
        f"have no such bound{_shielded(spec, delta)}, but a peer that does not follow the protocol "
        f"can read about rows of its choice, up to so many bits: {bits}."
    )


def _shielded(spec: SealedSpec, delta: float) -> str:
    found = {part.party: _shield_rho(spec, part) for part in spec.parts}
    epsilons = {name: epsilon_of(rho, delta) for name, rho in found.items() if rho}
    told = ", ".join(f"{name} {format_upper_bound(each)}" for name, each in epsilons.items())
    return f", except of rows with a shield, with epsilon at most {told}" if told else ""


def gram_part(solver: SealedSolver, state: SealedState) -> dict[str, Any] | None:
    """Return what the releases tell besides the model; None before the rounds are over."""
    if not solver.finished(state):
        return None
    found, spec = solver.estimate(state), solver.spec
    names = [
        (part.party, part.features[place])
        for part in spec.parts
        for place in solver.kept(state, part)
    ]
    chosen = spec.penalty * found.error
    shown, section = gram_summary(names, found.gram, found.target, chosen=chosen)
    share = explained(found, solver.in_deviations(state))
    fewest = float(people(spec, state.bodies).min())
    return section | {
        "intervals": _intervals(found, spec.radius, fewest, shown),
        "explained": {"share": round(share.share, 4), "error": round(share.error, 4)},
    }


def _intervals(found: SealedEstimate, radius: float, n_rows: float, shown: Any) -> dict[str, Any]:
    """Return unpenalised coefficients with 95 % intervals: sampling and noise.

    For ``x = G^-1 c`` errors move ``x`` by about ``G^-1 (dc - dG x)``; all entries of ``dG`` and
    ``dc`` are independent, each with a known error.
    """
    inverse = np.linalg.inv(found.gram)
    plain = inverse @ found.target
    coef = onto_ball(plain, radius)
    unexplained = min(max(1.0 - float(found.target @ plain), 0.05), 1.0)
    moved = unexplained / n_rows * found.gram + _noise(found.errors, coef)
    variance = np.diag(inverse @ moved @ inverse.T) + (_BIAS * plain) ** 2
    error = np.sqrt(np.maximum(variance, 0.0))
    reach = statistics.NormalDist().inv_cdf(0.5 + _LEVEL / 2.0) * error
    named = {"coef": plain, "error": error, "low": plain - reach, "high": plain + reach}
    return {"level": _LEVEL, **{name: rounded(each[shown]) for name, each in named.items()}}


def _noise(errors: FloatArray, coef: FloatArray) -> FloatArray:
    """Return the covariance of ``dc - dG x`` for a symmetric ``dG`` with these errors."""
    gram, target = errors[:-1] ** 2, errors[-1] ** 2
    spread = gram * np.outer(coef, coef)
    np.fill_diagonal(spread, target + gram @ coef**2)
    return spread
