"""What a report says of a job over clients: what each client's own ledger enforces, and a model.

Two figures, never mixed. Local: what a client spent at most, enforced by its account whatever
anybody else does. Central: what the published models alone would reveal under premises that nobody
enforces; it is computed from the job's public numbers, and its premises stand beside it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput
from colonnade.optim.admm.accounting import CENTRAL_LABEL, CENTRAL_PREMISES, central_epsilons
from colonnade.privacy.accounting import epsilon_of, rho_from_units
from colonnade.server.admm_job import FederatedAdmm
from colonnade.server.admm_state import AdmmState

# Points of the curves: computing a central figure takes a while.
_MOST_POINTS = 40


def clients_of(
    algorithm: FederatedAdmm, last: AdmmState, taken: Sequence[tuple[int, IntArray]]
) -> dict[str, Any]:
    """Return the report's part about clients.

    Parameters
    ----------
    last
        The newest state.
    taken
        How often each client had answered after so many rounds, oldest first.
    """
    method, delta = algorithm.method, algorithm.job.delta
    cost, done = method.spec.mechanism.cost, taken[-1][0]

    def amount(units: int) -> dict[str, float]:
        rho = rho_from_units(units)
        return {"units": units, "rho": rho, "epsilon": epsilon_of(rho, delta)}

    median = int(np.median(last.taken))
    return {
        "count": method.spec.n_clients,
        "declined": int(last.declined.sum()),
        "answers": int(last.taken.sum()),
        "local": {
            "enforced": True,
            "max": amount(cost * int(last.taken.max())),
            "median": amount(cost * median),
            "promised": amount(method.spec.max_units),
        },
        "central": _central(algorithm, done),
        "curves": _curves(algorithm, taken),
        "body_bytes": method.spec.body_bytes,
        # By party, in its clients' own order: how often each has answered.
        "answers_by_client": {
            part.party: algorithm.participations(last, part.party).tolist() for part in method.parts
        },
    }


def _central(algorithm: FederatedAdmm, rounds: int) -> dict[str, Any]:
    epsilon, note = None, ""
    if rounds:
        try:
            (epsilon,) = central_epsilons(algorithm.method.spec, [rounds], algorithm.job.delta)
        except BadInput as error:  # the library is not installed
            note = str(error)
    return {
        "enforced": False,
        "label": CENTRAL_LABEL,
        "epsilon": epsilon,
        "note": note,
        "premises": list(CENTRAL_PREMISES),
    }


def _curves(
    algorithm: FederatedAdmm, taken: Sequence[tuple[int, IntArray]]
) -> list[dict[str, float | int | None]]:
    """Return both figures as they grew over the rounds."""
    spec, delta = algorithm.method.spec, algorithm.job.delta
    chosen = [taken[place] for place in _spread(len(taken), _MOST_POINTS)]
    counts = [done for done, _ in chosen]
    central: Sequence[float | None]
    try:
        found = iter(central_epsilons(spec, [count for count in counts if count], delta))
        central = [next(found) if count else 0.0 for count in counts]
    except BadInput:
        central = [None] * len(counts)

    def epsilon(participations: float) -> float:
        return epsilon_of(rho_from_units(round(spec.mechanism.cost * participations)), delta)

    return [
        {
            "round": done,
            "local_max_epsilon": epsilon(float(answers.max())),
            "local_median_epsilon": epsilon(float(np.median(answers))),
            "central_epsilon": model,
        }
        for (done, answers), model in zip(chosen, central, strict=True)
    ]


def _spread(count: int, most: int) -> list[int]:
    """Return at most ``most`` places among ``count``, the first and the last among them."""
    return sorted({round(place) for place in np.linspace(0, count - 1, min(count, most))})


def statement_of(algorithm: FederatedAdmm) -> str:
    """Return the promise of a job over clients in one sentence."""
    from colonnade.server.report.markup import at_most, short

    delta = algorithm.job.delta
    most = epsilon_of(rho_from_units(algorithm.method.spec.max_units), delta)
    return (
        "Whatever all others do together, all that this job may make anybody send about one client"
        f" is differentially private with epsilon at most {at_most(most)} for the replacement of"
        f" all the client's rows (delta {short(delta, 3)})."
    )
