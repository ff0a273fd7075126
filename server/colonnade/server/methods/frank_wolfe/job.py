"""Frank-Wolfe as the engine sees it: states and tasks as bytes, prices, the model in real units."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.data.model import LinearModel
from colonnade.methods.frank_wolfe.codec import FrankWolfeTask, task_to_bytes
from colonnade.methods.frank_wolfe.solver.steps import FrankWolfeSolver, Iterate
from colonnade.methods.frank_wolfe.spec import LABEL, MEANS, SELECT, SHARE, FrankWolfeSpec
from colonnade.methods.job import Job
from colonnade.methods.models import linear_model
from colonnade.server.methods.base import Bodies, count_used
from colonnade.server.methods.deviations import Deviations, opening_spread
from colonnade.v1 import job_pb2


@dataclass(frozen=True, slots=True)
class VerticalFrankWolfe:
    """Steps of one Frank-Wolfe job."""

    job: Job
    job_id: str
    spec: FrankWolfeSpec
    solver: FrankWolfeSolver
    costs: Mapping[tuple[str, str], int]  # by party and kind, but for selections

    @classmethod
    def of(cls, job: Job, job_id: str, spec: FrankWolfeSpec) -> "VerticalFrankWolfe":
        """Make the steps of ``job``, whose method is ``spec``."""
        return cls(job, job_id, spec, FrankWolfeSolver.of(spec, job_id), _costs(spec, job_id))

    def start(self) -> Iterate:
        """Return the state before the opening."""
        return self.solver.start()

    def round_of(self, state: Iterate) -> int:
        """Return the round that comes next."""
        return state.round

    def finished(self, state: Iterate) -> bool:
        """Return whether all rounds are done."""
        return self.solver.finished(state)

    def tasks(self, state: Iterate) -> Mapping[str, bytes]:
        """Return the round's tasks by party."""
        asked = self.solver.tasks(state)
        return {
            party: task_to_bytes(FrankWolfeTask(task.public, task.candidates))
            for party, task in asked.items()
        }

    def check(self, state: Iterate, party: str, bodies: Bodies) -> None:
        """Refuse an answer that does not fit."""
        self.solver.check(state, party, bodies)

    def absorb(self, state: Iterate, answers: Mapping[str, Bodies]) -> Iterate:
        """Return the state after the round."""
        return self.solver.absorb(state, answers)

    def encode(self, state: Iterate) -> bytes:
        """Return the state's bytes."""
        message = job_pb2.FrankWolfeState(round=state.round, label=state.label or b"")
        for member in self.job.members:
            shares = state.shares[member.party]
            message.parts.add(
                coef=state.coef[member.party].tolist(),
                shared=sorted(shares),
                shares=[shares[feature] for feature in sorted(shares)],
                means=state.means.get(member.party, b""),
            )
        return message.SerializeToString(deterministic=True)

    def decode(self, body: bytes, *, since: Iterate | None = None) -> Iterate:
        """Return the state that the bytes stand for: whole, whatever came before."""
        del since
        message = job_pb2.FrankWolfeState.FromString(body)
        parts = {
            member.party: part for member, part in zip(self.job.members, message.parts, strict=True)
        }
        return Iterate(
            round=message.round,
            coef={name: np.array(part.coef, np.int64) for name, part in parts.items()},
            shares={
                name: dict(zip(part.shared, part.shares, strict=True))
                for name, part in parts.items()
            },
            label=message.label or None,
            means={name: part.means for name, part in parts.items() if part.means},
        )

    def cost(self, party: str, kind: str, round_: int) -> int:
        """Return the price of one release, in units."""
        if kind == SELECT:
            return self.spec.selection(round_).cost
        return self.costs[party, kind]

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of one release's payload."""
        return self.spec.body_bytes(party, kind)

    def model(self, state: Iterate) -> LinearModel:
        """Return the model so far."""
        solver = self.solver
        return linear_model(
            self.job, self.job_id, solver.coefficients(state), solver.intercept(state)
        )

    def features_used(self, state: Iterate) -> Mapping[str, int]:
        """Return how many features of each party the model so far uses."""
        return count_used(state.coef)

    def parameters(self) -> Mapping[str, Any]:
        """Return the method's public numbers."""
        spec = self.spec
        return {
            "rounds": spec.rounds,
            "sampling": spec.sampling.value,
            "sketch_dim": spec.sketch_dim,
            "sketch_entries": spec.sketch_entries,
            "sketch": "hadamard" if spec.dense_sketch else "sparse",
            "radius": _by_party({block.party: block.radius for block in spec.blocks}),
            "shares": _by_party({block.party: block.shares for block in spec.blocks}),
            "features_per_round": spec.features_per_round,
            "prior": spec.prior,
            "clip": spec.clip,
            "share_clip": spec.share_clip,
            "local_rounds": spec.local_rounds,
            "select_units": spec.select_units,
            "share_units": spec.share_units,
            "label_units": spec.label_units,
            "mean_units": spec.mean_units,
        }


def _by_party(numbers: Mapping[str, float]) -> float | str:
    """Return a number that all parties have, or each one's."""
    first, *others = numbers.values()
    if all(other == first for other in others):
        return first
    return ", ".join(f"{party} {number:g}" for party, number in numbers.items())


def _costs(spec: FrankWolfeSpec, job_id: str) -> Mapping[tuple[str, str], int]:
    sketch = spec.sketch(job_id)
    costs = {}
    for block in spec.blocks:
        if block.shares:
            costs[block.party, SHARE] = spec.share(sketch)[0].cost
        if spec.mean_units:
            costs[block.party, MEANS] = spec.means(block)[0].cost
        if spec.releases_label(block):
            costs[block.party, LABEL] = spec.label_share(sketch)[0].cost
    return costs


def frank_wolfe_deviations(algorithm: VerticalFrankWolfe, state: Iterate) -> Deviations:
    """Return what the opening tells of features' deviations."""
    spec = algorithm.spec
    found = {}
    for block in spec.blocks if spec.mean_units and state.means else ():
        mechanism, code = spec.means(block)
        spread = opening_spread(code.decode(state.means[block.party]), spec.n_rows, mechanism)
        found[block.party] = spread.deviations()[: len(block.features)]
    return found
