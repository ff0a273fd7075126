"""Frank-Wolfe as the engine sees it: states and tasks as bytes, prices, the model in real units."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from colonnade.methods.frank_wolfe.codec import FrankWolfeTask, task_to_bytes
from colonnade.methods.frank_wolfe.solver.steps import FrankWolfeSolver, Iterate
from colonnade.methods.frank_wolfe.spec import LABEL, MEANS, SELECT, SHARE, FrankWolfeSpec
from colonnade.methods.job import Job
from colonnade.server.methods.deviations import Deviations, opening_spread
from colonnade.server.methods.vertical import VerticalJob
from colonnade.v1 import job_pb2


def frank_wolfe_job(job: Job, job_id: str, spec: FrankWolfeSpec) -> VerticalJob:
    """Make the steps of ``job``, whose method is ``spec``."""
    costs = _costs(spec, job_id)  # by party and kind, but for selections

    def cost(party: str, kind: str, round_: int) -> int:
        return spec.selection(round_).cost if kind == SELECT else costs[party, kind]

    return VerticalJob(
        job,
        job_id,
        spec,
        FrankWolfeSolver.of(spec, job_id),
        task_to_bytes=lambda task: task_to_bytes(FrankWolfeTask(task.public, task.candidates)),
        encode=partial(_encode, [member.party for member in job.members]),
        decode=partial(_decode, [member.party for member in job.members]),
        cost=cost,
        parameters=partial(_parameters, spec),
    )


def _encode(parties: Sequence[str], state: Iterate) -> bytes:
    message = job_pb2.FrankWolfeState(round=state.round, label=state.label or b"")
    for party in parties:
        shares = state.shares[party]
        message.parts.add(
            coef=state.coef[party].tolist(),
            shared=sorted(shares),
            shares=[shares[feature] for feature in sorted(shares)],
            means=state.means.get(party, b""),
        )
    return message.SerializeToString(deterministic=True)


def _decode(parties: Sequence[str], body: bytes, *, since: Iterate | None = None) -> Iterate:
    """Return the state that the bytes stand for: whole, whatever came before."""
    del since
    message = job_pb2.FrankWolfeState.FromString(body)
    parts = dict(zip(parties, message.parts, strict=True))
    return Iterate(
        round=message.round,
        coef={name: np.array(part.coef, np.int64) for name, part in parts.items()},
        shares={
            name: dict(zip(part.shared, part.shares, strict=True)) for name, part in parts.items()
        },
        label=message.label or None,
        means={name: part.means for name, part in parts.items() if part.means},
    )


def _parameters(spec: FrankWolfeSpec) -> Mapping[str, Any]:
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


def frank_wolfe_deviations(algorithm: VerticalJob, state: Iterate) -> Deviations:
    """Return what the opening tells of features' deviations."""
    spec = algorithm.spec
    found = {}
    for block in spec.blocks if spec.mean_units and state.means else ():
        mechanism, code = spec.means(block)
        spread = opening_spread(code.decode(state.means[block.party]), spec.n_rows, mechanism)
        found[block.party] = spread.deviations()[: len(block.features)]
    return found
