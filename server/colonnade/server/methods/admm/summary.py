"""What a report says of a job over clients: what each client's own ledger enforces, and a model.

Two figures, never mixed. Local: what a client spent at most, enforced by its account whatever
anybody else does. Central: what the published models alone would reveal under premises that nobody
enforces; it is computed from the job's public numbers, and its premises stand beside it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput
from colonnade.data.model import LinearModel
from colonnade.methods.admm.accounting import CENTRAL_LABEL, CENTRAL_PREMISES, central_epsilons
from colonnade.methods.admm.choices import Aggregate
from colonnade.methods.admm.releases import DISPLACEMENT
from colonnade.methods.admm.secure.claims import alone_units, cohort_promise
from colonnade.methods.admm.secure.exchanges import FREE_KINDS, Exchange, free_bytes, number_of
from colonnade.privacy.accounting import epsilon_of, format_units, rho_from_units
from colonnade.server.methods.admm.job import FederatedAdmm
from colonnade.server.methods.admm.opening import SumState
from colonnade.server.methods.admm.secure_sum import SecureSumAdmm
from colonnade.server.methods.admm.state import AdmmState
from colonnade.server.methods.base import Findings
from colonnade.server.store.base import IterateRow

# Points of the curves: computing a central figure takes a while.
_MAX_POINTS = 40


@dataclass(frozen=True, slots=True, eq=False)
class HistoryPoint:
    """What was known after so many rounds."""

    done: int
    costs: IntArray  # of each client so far, in units
    model: LinearModel


@dataclass(frozen=True, slots=True)
class RoundCount:
    """One round: how many it asked, how many answers it had; ``done`` if they were enough."""

    round: int
    asked: int
    answers: int
    drawings: int
    done: bool
    minimum: int


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """A job in its rounds, from its first state to its newest."""

    last: AdmmState
    points: Sequence[HistoryPoint]
    rounds: Sequence[RoundCount]
    round_of: Mapping[int, int]  # by drawing: the round that it belongs to


def history_of(
    algorithm: FederatedAdmm, states: Iterable[tuple[IterateRow, AdmmState]], *, is_open: bool
) -> History:
    """Go through the states of a job once; each is used up by the next.

    Parameters
    ----------
    is_open
        Whether the newest state's drawing was asked: a job may end before that.
    """
    points, counts, round_of = list[HistoryPoint](), dict[int, RoundCount](), dict[int, int]()
    asked = drawn = np.empty(0, np.int64)
    known, state = 0, None

    def count(number: int, *, answers: int, done: bool) -> None:
        least = algorithm.method.spec.cohort(number).minimum
        before = counts.get(number, RoundCount(number, 0, 0, 0, done=False, minimum=least))
        pending, drawings = before.answers + answers, before.drawings + 1
        counts[number] = RoundCount(number, asked.size, pending, drawings, done, least)

    for _, state in states:
        total, number = int(state.answers.sum()), state.round
        if points:
            done = number > max(round_of.values())
            asked = np.union1d(asked, drawn)
            count(max(round_of.values()), answers=total - known, done=done)
        if not points or number > points[-1].done + 1:
            points.append(HistoryPoint(number - 1, algorithm.costs(state), algorithm.model(state)))
            asked = np.empty(0, np.int64)
        drawn = _drawn(algorithm, state)
        round_of[state.drawing], known = number, total
    if state is None:
        raise ValueError("a job that has begun has a state")
    if is_open and drawn.size:
        asked = np.union1d(asked, drawn)
        count(state.round, answers=0, done=False)
    return History(state, points, list(counts.values()), round_of)


def admm_findings(
    algorithm: FederatedAdmm | SecureSumAdmm,
    states: Iterable[tuple[IterateRow, Any]],
    *,
    is_open: bool,
) -> Findings:
    """Return what a report says of the rounds and of the clients."""
    if isinstance(algorithm, SecureSumAdmm):
        return _of_secure_sums(algorithm, states, is_open=is_open)
    return _findings(algorithm, history_of(algorithm, states, is_open=is_open))


def _findings(algorithm: FederatedAdmm, history: History) -> Findings:
    return Findings(
        models=[(point.done, point.model) for point in history.points],
        section=clients_of(algorithm, history),
        round_of=history.round_of,
        uplink=uplink_by_client(algorithm, history.last),
    )


def _of_secure_sums(
    algorithm: SecureSumAdmm, states: Iterable[tuple[IterateRow, SumState]], *, is_open: bool
) -> Findings:
    """Return what a report says of attempts: five exchanges are one drawing."""
    drawings = ((row, each.admm) for row, each in states if each.exchange is Exchange.ANNOUNCE)
    history = history_of(algorithm.whole, drawings, is_open=is_open)
    found = _findings(algorithm.whole, history)
    round_of = {
        number_of(drawing, exchange): round_
        for drawing, round_ in history.round_of.items()
        for exchange in Exchange
    }
    spec, delta = algorithm.whole.method.spec, algorithm.whole.job.delta
    most = f"At most {format_units(spec.max_units, delta)} for all rows of a client."
    section = {**found.section, "cohort": _secure(algorithm, delta)}
    return replace(
        found,
        section=section,
        round_of=round_of,
        statement=f"{most} {cohort_promise(spec, delta)}",
    )


def _secure(algorithm: SecureSumAdmm, delta: float) -> dict[str, Any]:
    """Return who a secure sum needs, and what is left if everybody else colludes."""
    rules, units = algorithm.rules, alone_units(algorithm.whole.method.spec)
    rho = rho_from_units(units)
    return {
        "holds": "if named peers follow the protocol",
        "maskers": rules.maskers,
        "colluding": rules.colluding,
        "threshold": rules.threshold,
        "honest": rules.honest,
        "alone": {"units": units, "rho": rho, "epsilon": epsilon_of(rho, delta)},
    }


def _drawn(algorithm: FederatedAdmm, state: AdmmState) -> IntArray:
    return np.empty(0, np.int64) if algorithm.finished(state) else algorithm.solver.sampled(state)


def clients_of(algorithm: FederatedAdmm, history: History) -> dict[str, Any]:
    """Return the report's part about clients."""
    spec, delta, last = algorithm.method.spec, algorithm.job.delta, history.last
    costs, done = algorithm.costs(last), history.points[-1].done

    def amount(units: int) -> dict[str, float]:
        rho = rho_from_units(units)
        return {"units": units, "rho": rho, "epsilon": epsilon_of(rho, delta)}

    return {
        "count": spec.n_clients,
        "declined": int(last.declined.sum()),
        "answers": int(last.answers.sum()),
        "minimum": spec.minimum,
        "sampled": spec.sampled,
        "meant": sum(spec.cohort(number + 1).sampled for number in range(spec.rounds)),
        "variant": spec.variant.value,
        "aggregate": spec.aggregate.value,
        "steps": spec.steps,
        "limit": spec.max_participations,
        "at_limit": int((last.taken >= spec.max_participations).sum()),
        "rounds": [asdict(each) for each in history.rounds],
        "unused": int(last.answered.sum()),
        "local": {
            "enforced": True,
            "max": amount(int(costs.max())),
            "median": amount(int(np.median(costs))),
            "promised": amount(spec.max_units),
        },
        "central": _central(algorithm, done),
        "curves": _curves(algorithm, [(point.done, point.costs) for point in history.points]),
        "body_bytes": spec.body_bytes,
        "intercept_bytes": spec.intercept_bytes,
        # By party, in its clients' own order: how often each has answered.
        "answers_by_client": {
            part.party: algorithm.participations(last, part.party).tolist()
            for part in algorithm.method.parts
        },
        "payload_by_client": _sizes(algorithm, last),
    }


def _sizes(algorithm: FederatedAdmm, last: AdmmState) -> dict[str, list[int]]:
    """Return the payload of each client by party; none where it sent sums."""
    parts = algorithm.method.parts
    if algorithm.method.spec.aggregate is not Aggregate.NONE:
        return {}
    return {part.party: algorithm.sent_bytes(last, part.party).tolist() for part in parts}


def uplink_by_client(algorithm: FederatedAdmm, last: AdmmState) -> dict[str, Any]:
    """Return what each client sent: so many answers, each of one size that was known before.

    Who answered in which round is not listed: that the drawings stay secret is a premise of the
    model-based figure.
    """
    spec = algorithm.method.spec
    answers = {
        part.party: algorithm.participations(last, part.party) for part in algorithm.method.parts
    }
    intercepts = spec.n_clients if spec.intercept_rounds else 0
    most = spec.payload_bytes(spec.n_clients * spec.max_participations, intercepts)
    if (rules := spec.cohort_rules) is not None:  # a masker's exchanges, every attempt needed
        free = sum(free_bytes(kind, rules) for kind in FREE_KINDS.values())
        each = free + max(spec.body_bytes, spec.intercept_bytes)
        most = rules.maskers * algorithm.method.max_attempts * each
    return {
        "predicted_most_bytes": most,
        "clients": {
            "kind": DISPLACEMENT,
            "body_bytes": spec.body_bytes,
            "intercept_bytes": spec.intercept_bytes,
            "sums": spec.aggregate is not Aggregate.NONE,
            "answers": {party: counts.tolist() for party, counts in answers.items()},
            "payload_bytes": _sizes(algorithm, last),
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
    algorithm: FederatedAdmm, costs: Sequence[tuple[int, IntArray]]
) -> list[dict[str, float | int | None]]:
    """Return both figures as they grew over the rounds."""
    spec, delta = algorithm.method.spec, algorithm.job.delta
    chosen = [costs[place] for place in _spread(len(costs), _MAX_POINTS)]
    counts = [done for done, _ in chosen]
    central: Sequence[float | None]
    try:
        found = iter(central_epsilons(spec, [count for count in counts if count], delta))
        central = [next(found) if count else 0.0 for count in counts]
    except BadInput:
        central = [None] * len(counts)

    def epsilon(units: float) -> float:
        return epsilon_of(rho_from_units(round(units)), delta)

    return [
        {
            "round": done,
            "local_max_epsilon": epsilon(float(units.max())),
            "local_median_epsilon": epsilon(float(np.median(units))),
            "central_epsilon": model,
        }
        for (done, units), model in zip(chosen, central, strict=True)
    ]


def _spread(count: int, most: int) -> list[int]:
    """Return at most ``most`` places among ``count``, the first and the last among them."""
    return sorted({round(place) for place in np.linspace(0, count - 1, min(count, most))})
