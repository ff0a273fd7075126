"""A method over columns as the engine sees it: a solver's steps, states and tasks as bytes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from colonnade.data.model import LinearModel
from colonnade.methods.job import Job
from colonnade.methods.models import linear_model
from colonnade.server.methods.base import Bodies, count_used


@dataclass(frozen=True, slots=True)
class VerticalJob:
    """Steps of one job; of a job that relays, states are stored as changes.

    Parameters
    ----------
    solver
        Pure steps from state to tasks and from releases to state. States have a ``round``, the one
        that comes next, and each party's ``coef`` so far.
    task_to_bytes
        Encode one party's task.
    encode, decode
        Between a state and its bytes; ``decode`` is told the state before as ``since``.
    encode_change
        Encode a state as a change of the one before.
    cost
        Return the price of one release by party, kind and round, in units.
    parameters
        Return the method's public numbers.
    """

    job: Job
    job_id: str
    spec: Any
    solver: Any
    task_to_bytes: Callable[[Any], bytes]
    encode: Callable[[Any], bytes]
    decode: Callable[..., Any]
    cost: Callable[[str, str, int], int]
    parameters: Callable[[], Mapping[str, Any]]
    encode_change: Callable[[Any, Any], bytes] = lambda _before, _after: b""
    account: str = ""  # of the ledger that pays: the default one

    def start(self) -> Any:
        """Return the state before the first round."""
        return self.solver.start()

    def round_of(self, state: Any) -> int:
        """Return the round that comes next."""
        return int(state.round)

    def rounds(self, state: Any) -> int:
        """Return the rounds after the first."""
        del state
        return int(self.spec.rounds)

    def finished(self, state: Any) -> bool:
        """Return whether all rounds are done."""
        return bool(self.solver.finished(state))

    def tasks(self, state: Any) -> Mapping[str, bytes]:
        """Return the round's tasks by party."""
        asked = self.solver.tasks(state)
        return {party: self.task_to_bytes(task) for party, task in asked.items()}

    def check(self, state: Any, party: str, bodies: Bodies) -> None:
        """Refuse an answer that does not fit."""
        self.solver.check(state, party, bodies)

    def absorb(self, state: Any, answers: Mapping[str, Bodies]) -> Any:
        """Return the state after the round."""
        return self.solver.absorb(state, answers)

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of one release's payload."""
        return int(self.spec.body_bytes(party, kind))

    def model(self, state: Any) -> LinearModel:
        """Return the model so far."""
        coef, intercept = self.solver.coefficients(state), self.solver.intercept(state)
        return linear_model(self.job, self.job_id, coef, intercept)

    def features_used(self, state: Any) -> Mapping[str, int]:
        """Return how many features of each party the model so far uses."""
        return count_used(state.coef)
