"""What the coordinator asks of a method: pure steps from state to tasks and from answers to state.

The engine, store, meter and report know only this; `registry` says which method has which steps.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from colonnade.core.arrays import AnyArray, IntArray
from colonnade.core.errors import BadInput
from colonnade.data.model import LinearModel
from colonnade.linear.solutions import Wanted
from colonnade.server.store.base import IterateRow, UplinkRow
from colonnade.wire.cohort import ClientAnswers

S = TypeVar("S")
A_contra = TypeVar("A_contra", contravariant=True)  # a party's answer

Bodies = Mapping[str, bytes]  # by kind


class Algorithm(Protocol[S, A_contra]):
    """The steps of one job. States are values; nothing here does I/O."""

    def start(self) -> S:
        """Return the state before the opening."""

    def round_of(self, state: S) -> int:
        """Return the round that comes next; 0 is the opening."""

    def finished(self, state: S) -> bool:
        """Return whether all rounds are done."""

    def tasks(self, state: S) -> Mapping[str, bytes]:
        """Return the round's tasks by party; none if the round asks nothing."""

    def check(self, state: S, party: str, bodies: A_contra, /) -> None:
        """Raise `BadInput` unless the answer has the kinds and sizes that the state calls for."""

    def absorb(self, state: S, answers: Mapping[str, A_contra]) -> S:
        """Return the state after the round."""

    def encode(self, state: S) -> bytes:
        """Return the state's bytes."""

    def decode(self, body: bytes, *, since: S | None = None) -> S:
        """Return the state that the bytes stand for: whole, or as a change of the one before."""

    def cost(self, party: str, kind: str, round_: int) -> int:
        """Return the price of one release, in units."""

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of one release's payload."""

    def model(self, state: S) -> LinearModel:
        """Return the model so far."""

    def features_used(self, state: S) -> Mapping[str, int]:
        """Return how many features of each party the model uses; {} if all have the same ones."""

    def parameters(self) -> Mapping[str, Any]:
        """Return the method's public numbers, for the report."""


class RelayAlgorithm(Algorithm[S, Bodies], Protocol[S]):
    """The steps of a job that relays between parties, in as many rounds as they need.

    A state holds what is on its way, so it is stored as a change of the one before, and what was
    relayed is forgotten when it has arrived.
    """

    @property
    def account(self) -> str:
        """The ledger account that pays."""

    def rounds(self, state: S) -> int:
        """Return the rounds after the first, as far as they are known."""

    def encode_change(self, before: S, after: S) -> bytes:
        """Return the bytes of a state as a change of the one before."""


class CohortAlgorithm(Algorithm[S, ClientAnswers], Protocol[S]):
    """The steps of a job over clients, of whom a round asks a cohort.

    The clients of all parties are numbered in the order of the members; in what a party says they
    are numbered in its own order, so that its first one has the number `first`.
    """

    def release_kind(self, task: bytes) -> str:
        """Return the one kind of release that a task asks clients for."""

    @property
    def round_timeout_s(self) -> int:
        """Seconds after which a drawing closes with those who answered."""

    def first(self, party: str) -> int:
        """Return the number, among all clients, of the party's first."""

    def asked(self, task: bytes) -> IntArray:
        """Return whom a task asks."""

    def kept_task(self, task: bytes) -> bytes:
        """Return what a task says besides what follows from the state."""

    def check_answers(self, party: str, said: ClientAnswers, task: bytes) -> None:
        """Raise `BadInput` unless ``task`` asked for all that is said, and sizes fit."""

    def expected(self, state: S) -> IntArray:
        """Return, for each client, the round of the question that it owes an answer to, or 0."""

    def oldest_owed(self, state: S) -> int:
        """Return the least round whose question is still owed an answer, or the open drawing."""

    def enough(self, state: S, answers: Mapping[str, ClientAnswers]) -> bool:
        """Return whether the open round has its minimum with these answers."""

    def spares(self, state: S) -> bool:
        """Return whether the open round could ask somebody whom it has not asked."""

    def shortage(self, state: S, answers: Mapping[str, ClientAnswers]) -> str:
        """Describe what the open round lacks."""

    def without(self, state: S, party: str) -> S:
        """Return the state in which all clients of ``party`` have declined."""

    def encode_change(self, before: S, answers: Mapping[str, ClientAnswers], after: S) -> bytes:
        """Return the bytes of the state to which ``answers`` led, as a change of the one before."""

    def rounds_done(self, state: S) -> int:
        """Return how many rounds had their minimum."""

    def spent(self, state: S, party: str) -> int:
        """Return the most that the job has cost any one client of ``party``, in units."""


@dataclass(frozen=True, slots=True)
class MaskedAnswer:
    """What a masker sends in an exchange of a secure sum; no body if it dropped out."""

    body: bytes
    clients: tuple[int, ...] = ()  # of a masked sum, in the party's own order
    declined: tuple[int, ...] = ()


class SecureSumAlgorithm(Algorithm[S, MaskedAnswer], Protocol[S]):
    """The steps of a job over clients that opens only the sum over all parties."""

    @property
    def threshold(self) -> int:
        """How many maskers every exchange needs."""

    @property
    def round_timeout_s(self) -> int:
        """Seconds after which an exchange closes with those who answered, if they are enough."""

    def attempt(self, state: S) -> int:
        """Return the number of the open attempt."""

    def check_answer(
        self, state: S | None, round_: int, party: str, answer: MaskedAnswer, kinds: set[str]
    ) -> None:
        """Raise `BadInput` unless a message fits its exchange; no state if it came late."""

    def shortage(self, state: S) -> str:
        """Say what the open round lacks."""

    def without(self, state: S, party: str) -> S:
        """Return the state in which all clients of ``party`` have declined."""

    def encode_change(self, answers: Mapping[str, MaskedAnswer], after: S) -> bytes:
        """Return the bytes of the state to which ``answers`` led, as a change of the one before."""

    def rounds_done(self, state: S) -> int:
        """Return how many rounds had their minimum."""

    def spent(self, state: S, party: str) -> int:
        """Return the most that the job has cost any one client of ``party``, in units."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a report says of a job's rounds besides what was counted and charged.

    Parameters
    ----------
    models
        The model after so many rounds; 0 is the start.
    section
        The method's own part of the report, under the key that its `Method` names; None for none.
    contribution
        What each party's columns explain, as the releases tell; None if they do not.
    statement
        What is promised, where it is another promise than that of a model's releases.
    promise
        Return what is promised from the report's part on privacy, where the usual words do not fit.
    also
        Further parts of the report that the method has in common with another.
    round_of
        By the number of a message: the round that it belongs to, where the two differ.
    body_bytes
        Return the exact size of a body, where bodies of one kind differ from round to round.
    uplink
        What the method adds to the counts of bytes.
    """

    models: Iterable[tuple[int, LinearModel]] = ()
    section: Any = None
    contribution: Mapping[str, Any] | None = None
    statement: str = ""
    promise: Callable[[Mapping[str, Any]], str] | None = None
    also: Mapping[str, Any] = field(default_factory=dict)
    round_of: Mapping[int, int] = field(default_factory=dict)
    body_bytes: Callable[[UplinkRow], int] | None = None
    uplink: Mapping[str, Any] = field(default_factory=dict)


def whole_states(
    algorithm: Algorithm[S, Any], states: Iterable[tuple[IterateRow, S]], *, is_open: bool
) -> Findings:
    """Return the models of a job whose every round leads to a state, the opening to none."""
    del is_open
    return Findings((row.round - 1, algorithm.model(state)) for row, state in states if row.round)


def count_used(coef: Mapping[str, AnyArray]) -> dict[str, int]:
    """Return how many coefficients of each party are not 0."""
    return {party: int(np.count_nonzero(part)) for party, part in coef.items()}


def model_under(
    algorithm: Algorithm[S, Any],
    solve: Callable[[Wanted], S],
    penalty: str,
    numbers: Mapping[str, float],
) -> LinearModel:
    """Return the model of ``solve`` under another penalty: a function of releases."""
    try:
        wanted = Wanted(penalty, **numbers)
    except ValueError as error:
        raise BadInput(str(error)) from None
    try:
        return algorithm.model(solve(wanted))
    except (ValueError, ArithmeticError, IndexError, np.linalg.LinAlgError):
        raise BadInput("there is no solution with these numbers; use larger ones") from None
