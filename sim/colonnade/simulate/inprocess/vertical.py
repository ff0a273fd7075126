"""A vertical job in one process: the shipped steps of both sides, without wire or processes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array
from colonnade.core.fixedpoint import GRID
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Released
from colonnade.methods.frank_wolfe.solver.steps import FrankWolfeSolver, Iterate, StepTask
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec
from colonnade.methods.problem import Loss
from colonnade.party.data.columns import HeldColumns
from colonnade.party.methods.frank_wolfe import FrankWolfeParty
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.privacy.sampling import NoiseSource
from colonnade.sketching.sparse import Sketch

T = TypeVar("T")


def grid(values: FloatArray) -> Int16Array:
    """Put values in [-1, 1] on the grid; others are clipped."""
    return np.rint(np.clip(values, -1, 1) * GRID).astype(np.int16)


@dataclass(frozen=True)
class Data:
    """A table on the grid and how its columns are split over parties."""

    columns: Int16Array  # (n_features, n_rows)
    label: Int16Array
    splits: tuple[tuple[int, ...], ...]
    presence: tuple[Int16Array, ...] = ()  # whom each party has, if not everybody: above 0

    def blocks(self, *, radius: float, shares: int, owner: int | None = None) -> tuple[Block, ...]:
        """Return a part of a job for each party; ``owner`` alone holds the label, if given."""
        return tuple(
            Block(
                party=f"p{k}",
                features=tuple(f"x{i}" for i in split),
                radius=radius,
                shares=shares,
                holds_label=owner in (None, k),
            )
            for k, split in enumerate(self.splits)
        )


class PartyPlace(Protocol):
    """A party's place in a specification."""

    @property
    def party(self) -> str:
        """Its name."""

    @property
    def holds_label(self) -> bool:
        """Whether it uses the label."""


class PricedSpec(Protocol):
    """What a specification says of its parties' prices and its sketch."""

    def max_units(self, party: str) -> int:
        """Return the most that the job can cost a party."""

    def sketch(self, job: str) -> Sketch:
        """Return the job's public matrix."""


def make_parties(
    data: Data,
    spec: PricedSpec,
    places: Sequence[PartyPlace],
    *,
    job: str,
    noise: NoiseSource,
    make: Callable[..., T],
) -> dict[str, T]:
    """Make the parties of ``job``, each with a simulation ledger in memory."""
    made = {}
    for place, context in enumerate(places):
        ledger = memory_ledger(LedgerConfig(context.party, {"": MAX_UNITS}, simulation=True))
        ledger.admit(job, units=spec.max_units(context.party))
        columns, gate = held_columns(data, place, label=context.holds_label), Gate(ledger, noise)
        made[context.party] = make(spec, job, context, spec.sketch(job), columns, gate, ledger)
    return made


def held_columns(data: Data, place: int, *, label: bool) -> HeldColumns:
    """Return the columns of a party, by its place in the order of the splits."""
    return HeldColumns(
        np.ascontiguousarray(data.columns[list(data.splits[place])]),
        data.label if label else None,
        data.presence[place] if data.presence else None,
    )


def parties(
    data: Data, spec: FrankWolfeSpec, job: str, noise: NoiseSource
) -> dict[str, FrankWolfeParty]:
    """Make the parties of a Frank-Wolfe job."""
    return make_parties(data, spec, spec.blocks, job=job, noise=noise, make=FrankWolfeParty)


def run(
    data: Data, spec: FrankWolfeSpec, noise: NoiseSource, *, job: str = "job"
) -> tuple[Iterate, dict[str, FrankWolfeParty]]:
    """Run all rounds and return the last iterate and the parties."""

    def answer(party: FrankWolfeParty, task: StepTask, request: bytes) -> Sequence[Released]:
        if task.public is None:
            return party.open(request)
        return party.choose(task.round, task.public, task.candidates, request)

    members = parties(data, spec, job, noise)
    return run_rounds(FrankWolfeSolver.of(spec, job), members, answer), members


def run_rounds(
    solver: Any, members: Mapping[str, T], answer: Callable[[T, Any, bytes], Sequence[Released]]
) -> Any:
    """Run all rounds of a solver whose tasks ``members`` answer; return the last state."""
    state = solver.start()
    while not solver.finished(state):
        answers = {}
        for name, task in solver.tasks(state).items():
            released = answer(members[name], task, b"%d" % task.round)
            answers[name] = {release.key.kind: release.body for release in released}
            solver.check(state, name, answers[name])
        state = solver.absorb(state, answers)
    return state


@dataclass(frozen=True)
class ScaledModel:
    """A linear model on scaled columns: coefficients by party, and a constant."""

    coefs: Sequence[FloatArray]
    intercept: float

    def predict(self, data: Data) -> FloatArray:
        """Return the scaled predictions for all rows."""
        prediction = np.full(data.label.size, self.intercept)
        for coef, split in zip(self.coefs, data.splits, strict=True):
            for feature in np.flatnonzero(coef):
                prediction += coef[feature] / GRID * data.columns[split[feature]]
        return prediction


def fit(data: Data, spec: FrankWolfeSpec, noise: NoiseSource, *, job: str = "job") -> ScaledModel:
    """Run a job and return its model."""
    state, _ = run(data, spec, noise, job=job)
    return model_of(spec, state)


def model_of(spec: FrankWolfeSpec, state: Iterate) -> ScaledModel:
    """Return the model of an iterate."""
    return scaled_model(FrankWolfeSolver.of(spec, ""), state)  # the name matters to sketches only


def scaled_model(solver: Any, state: Any) -> ScaledModel:
    """Return the model of a solver's state."""
    return ScaledModel(list(solver.coefficients(state).values()), solver.intercept(state))


def r2(label: FloatArray, prediction: FloatArray) -> float:
    """Return the share of the label's variance that the prediction explains.

    Of a label without variance, it is 1 if the prediction is exact and 0 otherwise.
    """
    rest, whole = ((label - prediction) ** 2).sum(), ((label - label.mean()) ** 2).sum()
    if whole == 0.0:
        return float(rest == 0.0)
    return float(1 - rest / whole)


def auc(label: FloatArray, prediction: FloatArray) -> float:
    """Return how often a positive row is ranked above a negative one; ties count half."""
    _, place, count = np.unique(prediction, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2.0)[place]
    positive = label > 0
    n_positive = int(positive.sum())
    n_negative = label.size - n_positive
    if not n_positive or not n_negative:
        return 0.5
    above = float(ranks[positive].sum()) - n_positive * (n_positive + 1) / 2.0
    return above / (n_positive * n_negative)


def quality(data: Data, model: ScaledModel, loss: Loss) -> float:
    """Return R2, or the area under the curve for the logistic loss. Simulation only."""
    label, prediction = data.label / GRID, model.predict(data)
    return auc(label, prediction) if loss is Loss.LOGISTIC else r2(label, prediction)
