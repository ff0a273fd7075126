"""A vertical job in one process: the shipped steps of both sides, without wire or processes."""

from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array
from colonnade.core.fixedpoint import GRID
from colonnade.optim.vertical.spec import Block, FrankWolfeSpec, Labels
from colonnade.party.frank_wolfe import Columns, FrankWolfeParty
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.privacy.founding import Charter, memory_ledger
from colonnade.privacy.gate import Gate
from colonnade.privacy.sampling import NoiseSource
from colonnade.server.frank_wolfe import Answer, FrankWolfe, Iterate


def grid(values: FloatArray) -> Int16Array:
    """Put values in [-1, 1] on the grid."""
    return np.rint(np.clip(values, -1, 1) * GRID).astype(np.int16)


@dataclass(frozen=True)
class Data:
    """A table and how its columns are split."""

    columns: Int16Array  # (n_features, n_rows)
    label: Int16Array
    splits: tuple[tuple[int, ...], ...]

    def blocks(self, *, radius: float, shares: int, owner: int | None = None) -> tuple[Block, ...]:
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


def parties(
    data: Data, spec: FrankWolfeSpec, job: str, noise: NoiseSource
) -> dict[str, FrankWolfeParty]:
    made = {}
    for block, split in zip(spec.blocks, data.splits, strict=True):
        ledger = memory_ledger(Charter(block.party, {"": MAX_UNITS}, simulation=True))
        ledger.admit(job, units=spec.max_units(block.party))
        columns = Columns(
            np.ascontiguousarray(data.columns[list(split)]),
            data.label if block.holds_label else None,
        )
        made[block.party] = FrankWolfeParty(
            spec, job, block, spec.sketch(job), columns, Gate(ledger, noise), ledger
        )
    return made


def run(
    data: Data, spec: FrankWolfeSpec, noise: NoiseSource, *, job: str = "job"
) -> tuple[Iterate, dict[str, FrankWolfeParty]]:
    """Run all rounds and return the last iterate and the parties."""
    solver, members = FrankWolfe.of(spec, job), parties(data, spec, job, noise)
    state = solver.start()
    if spec.labels is Labels.SKETCHED:
        owner = next(block.party for block in spec.blocks if block.holds_label)
        state = solver.with_label(state, members[owner].share_label(b"label").body)
    for _ in range(spec.rounds):
        answers = {}
        for name, task in solver.tasks(state).items():
            request = b"%d" % task.round
            released = members[name].choose(task.round, task.public, task.candidates, request)
            answers[name] = Answer(*(release.body for release in released))
        state = solver.absorb(state, answers)
    return state, members


def r2(data: Data, state: Iterate) -> float:
    """Return the share of the label's variance that the model explains."""
    prediction = np.zeros(data.label.size)
    for k, split in enumerate(data.splits):
        coef = state.coef[f"p{k}"] / 2**32
        prediction += coef @ (data.columns[list(split)] / GRID)
    label = data.label / GRID
    return float(1 - ((label - prediction) ** 2).sum() / ((label - label.mean()) ** 2).sum())
