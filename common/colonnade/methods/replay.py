"""A job's model recomputed from the releases that its parties signed.

A coordinator says what a model is; whoever has the releases can compute it. A party that is to
apply a model does, so that nobody can hand it coefficients that no job led to. Releases are checked
one by one: each has the receipt of its party's ledger, under a key that the checker knows, for this
job, round and kind; a round has an answer from everybody whom it asked, and none from others.

Equal releases give equal bits with equal versions of this program. The last bits of a
linear-algebra routine differ between processors and numbers of threads; coefficients and
calibration are rounded, so that these hardly ever matter. Where one lies at the border between two
roundings (once in some 10,000 models), the model is refused, not approximated.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.errors import BadInput, BadMessage
from colonnade.data.model import LinearModel
from colonnade.ledger.ledger import Released
from colonnade.linear.solutions import Wanted
from colonnade.methods.frank_wolfe.method import FRANK_WOLFE
from colonnade.methods.frank_wolfe.solver.steps import FrankWolfeSolver
from colonnade.methods.job import Job
from colonnade.methods.models import linear_model
from colonnade.methods.moments.method import MOMENTS
from colonnade.methods.moments.solver.solutions import solved
from colonnade.methods.moments.solver.steps import MomentsSolver, MomentsState
from colonnade.methods.problem import Solution
from colonnade.methods.sealed.method import SEALED_METHOD
from colonnade.methods.sealed.solver.replay import SealedReplay, enters_model
from colonnade.methods.sealed.spec import SealedSpec

Bodies = Mapping[str, bytes]  # by kind


class BadEvidence(BadMessage):
    """The releases shown for a model are not those of its job, or do not lead to it."""

    code = "bad_evidence"


class ReplaySolver(Protocol):
    """The pure steps from releases to coefficients."""

    def start(self) -> Any:
        """Return the state before the first round."""

    def finished(self, state: Any) -> bool:
        """Return whether all rounds are done."""

    def tasks(self, state: Any) -> Mapping[str, Any]:
        """Return what the round asks of whom."""

    def check(self, state: Any, party: str, bodies: Bodies) -> None:
        """Raise `BadInput` unless an answer has the kinds and sizes of the round."""

    def absorb(self, state: Any, answers: Mapping[str, Bodies]) -> Any:
        """Return the state after the round."""

    def coefficients(self, state: Any) -> Mapping[str, FloatArray]:
        """Return the coefficients on scaled features, by party."""

    def intercept(self, state: Any) -> float:
        """Return the constant term."""


@dataclass(frozen=True, slots=True)
class Replay:
    """How jobs of one kind are computed once more."""

    solver: Callable[[Any, str], ReplaySolver]  # from the method's specification and the job's name
    other: Callable[[Any, Any, Solution], Any] | None = None  # the state under another penalty
    counts: Callable[[str], bool] = lambda _kind: True  # whether coefficients depend on a kind


_REPLAYS: dict[str, Replay] = {}


def register(kind: str, replay: Replay) -> None:
    """Make known how jobs of ``kind`` are computed once more."""
    if _REPLAYS.setdefault(kind, replay) is not replay:
        raise ValueError(f"there is another way to replay {kind!r}")


def is_evidence(job: str, kind: str) -> bool:
    """Return whether a release of ``kind`` is needed to compute a model of a job again."""
    return job in _REPLAYS and _REPLAYS[job].counts(kind)


def replayed(
    job: Job, job_id: str, evidence: Iterable[tuple[str, Released]], solution: Solution
) -> LinearModel:
    """Return the model to which releases, by party, lead; refuse any too many or too few."""
    if (replay := _REPLAYS.get(job.kind)) is None:
        raise BadEvidence(f"models of kind {job.kind} are not computed again from releases")
    solver = replay.solver(job.method, job_id)
    rounds = _by_round(job_id, evidence)
    state, number = solver.start(), 0
    try:
        while not solver.finished(state):
            answers = rounds.pop(number, {})
            if answers.keys() != solver.tasks(state).keys():
                raise BadEvidence(f"round {number} has other answers than it asked for")
            for party, bodies in answers.items():
                solver.check(state, party, bodies)
            ordered = {m.party: answers[m.party] for m in job.members if m.party in answers}
            state, number = solver.absorb(state, ordered), number + 1
        if rounds:
            raise BadEvidence("there are releases of rounds that the job does not have")
        if solution.penalty:
            if replay.other is None:
                raise BadEvidence(f"a job of kind {job.kind} has one solution")
            state = replay.other(solver, state, solution)
        return linear_model(job, job_id, solver.coefficients(state), solver.intercept(state))
    except BadEvidence:
        raise
    except (BadInput, ValueError, ArithmeticError, LookupError, np.linalg.LinAlgError):
        # Whatever a relay made of it: releases that no honest run has.
        raise BadEvidence("the releases shown lead to no model of their job") from None


def check_receipts(evidence: Iterable[tuple[str, Released]], keys: Mapping[str, bytes]) -> None:
    """Refuse releases that their parties' ledgers, by their pinned ``keys``, did not sign."""
    for party, each in evidence:
        if party not in keys or not each.receipt.signed_by(keys[party]):
            raise BadEvidence(f"a release of {party} is not signed by the key pinned for it")


def _by_round(
    job_id: str, evidence: Iterable[tuple[str, Released]]
) -> dict[int, dict[str, dict[str, bytes]]]:
    rounds: dict[int, dict[str, dict[str, bytes]]] = {}
    for party, each in evidence:
        key = each.key
        bodies = rounds.setdefault(key.round, {}).setdefault(party, {})
        if key.job != job_id or key.account or key.kind in bodies:
            raise BadEvidence("a release is of another job, or is shown twice")
        bodies[key.kind] = each.body
    return rounds


def _other_moments(solver: MomentsSolver, state: MomentsState, solution: Solution) -> MomentsState:
    return solved(solver, state, Wanted(solution.penalty, **solution.numbers))


def _sealed(spec: SealedSpec, job_id: str) -> SealedReplay:
    del job_id  # signs are the parties' business: what they opened has none
    return SealedReplay(spec)


register(FRANK_WOLFE.kind, Replay(FrankWolfeSolver.of))
register(MOMENTS.kind, Replay(MomentsSolver, _other_moments))
register(SEALED_METHOD.kind, Replay(_sealed, SealedReplay.other, counts=enters_model))
