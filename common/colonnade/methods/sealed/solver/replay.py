"""A sealed job's coefficients recomputed without what was relayed between its parties.

Coefficients depend on means, Gram matrices and opened products. Ciphertexts and replies are
megabytes that only their receivers can use and that nobody keeps, so none is asked for here: what
they led to is what was opened, under the signature of the party that opened it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from colonnade.core.arrays import FloatArray
from colonnade.core.errors import BadInput
from colonnade.linear.solutions import Wanted, solution
from colonnade.methods.base import Part
from colonnade.methods.moments.staged import expected_part
from colonnade.methods.problem import Solution
from colonnade.methods.sealed.kinds import REPLIES, SEALED, SealedStage, parsed
from colonnade.methods.sealed.solver.steps import SealedSolver, SealedState
from colonnade.methods.sealed.spec import SealedSpec


def enters_model(kind: str) -> bool:
    """Return whether coefficients depend on releases of ``kind``."""
    return parsed(kind)[0] not in (*SEALED, *REPLIES)


@dataclass(frozen=True, slots=True)
class _Opened:
    """A specification as far as coefficients depend on its rounds."""

    spec: SealedSpec

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.spec.parts

    def stages(self) -> tuple[SealedStage, ...]:
        return self.spec.stages()

    def round_kinds(self, round_: int, part: Part) -> tuple[str, ...]:
        return tuple(kind for kind in self.spec.round_kinds(round_, part) if enters_model(kind))

    def body_bytes(self, party: str, kind: str) -> int:
        return self.spec.body_bytes(party, kind)


@dataclass(frozen=True, slots=True)
class SealedReplay:
    """The steps of one job from what was opened alone; states are those of `SealedSolver`."""

    spec: SealedSpec

    @property
    def _solver(self) -> SealedSolver:
        return SealedSolver(self.spec)

    def start(self) -> SealedState:
        """Return the state before the first round."""
        return self._solver.start()

    def finished(self, state: SealedState) -> bool:
        """Return whether all rounds are done."""
        return self._solver.finished(state)

    def tasks(self, state: SealedState) -> Mapping[str, tuple[str, ...]]:
        """Return the kinds that a round has of whom: nobody, in one of replies alone."""
        kinds = {
            part.party: _Opened(self.spec).round_kinds(state.round, part)
            for part in self.spec.parts
        }
        return {party: asked for party, asked in kinds.items() if asked}

    def check(self, state: SealedState, party: str, bodies: Mapping[str, bytes]) -> None:
        """Raise `BadInput` unless ``bodies`` are of the kinds and sizes that are expected."""
        expected_part(_Opened(self.spec), state.round, party, bodies)

    def absorb(self, state: SealedState, answers: Mapping[str, Mapping[str, bytes]]) -> SealedState:
        """Take a round's releases and compute what follows from them."""
        return self._solver.absorb(state, answers)

    def coefficients(self, state: SealedState) -> Mapping[str, FloatArray]:
        """Return the coefficients on the scaled features, by party."""
        return self._solver.coefficients(state)

    def intercept(self, state: SealedState) -> float:
        """Return the constant term."""
        return self._solver.intercept(state)

    def other(self, state: SealedState, wanted: Solution) -> SealedState:
        """Return the state under another penalty."""
        return solved(self._solver, state, Wanted(wanted.penalty, **wanted.numbers))


def solved(solver: SealedSolver, state: SealedState, wanted: Wanted) -> SealedState:
    """Return a finished job's state under another penalty: a function of releases."""
    if not solver.finished(state):
        raise BadInput("the job's rounds are not over: there is no Gram matrix to solve yet")
    found = solver.estimate(state)
    x = solution(solver.spec, found.gram, found.target, error=found.error, wanted=wanted)
    coef, intercept = solver.scaled(state, x)
    return replace(state, coef=coef, intercept=intercept)
