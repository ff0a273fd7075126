"""A sealed job as the engine sees it: states as changes, tasks as bytes, a model in real units."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from colonnade.data.model import LinearModel
from colonnade.methods.job import Job
from colonnade.methods.moments.method import MOMENTS
from colonnade.methods.sealed.codec import task_to_bytes
from colonnade.methods.sealed.solver.replay import solved
from colonnade.methods.sealed.solver.steps import SealedSolver, SealedState
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.server.methods.base import Findings, model_under, whole_states
from colonnade.server.methods.sealed.contribution import sealed_contribution
from colonnade.server.methods.sealed.state import decode_state, encode_state
from colonnade.server.methods.sealed.summary import gram_part, sealed_promise, sealed_section
from colonnade.server.methods.vertical import VerticalJob
from colonnade.server.store.base import IterateRow


def sealed_job(job: Job, job_id: str, spec: SealedSpec) -> VerticalJob:
    """Make the steps of ``job``, whose method is ``spec``."""
    return VerticalJob(
        job,
        job_id,
        spec,
        SealedSolver(spec),
        task_to_bytes=task_to_bytes,
        encode=partial(encode_state, spec),
        encode_change=lambda before, after: encode_state(spec, after, since=before),
        decode=partial(decode_state, spec),
        cost=lambda party, kind, _round: spec.cost(party, kind),
        parameters=partial(_parameters, spec),
    )


def _parameters(spec: SealedSpec) -> Mapping[str, Any]:
    return {
        "rounds": spec.rounds,
        "buckets": spec.buckets if spec.summed else 0,
        "key_groups": spec.groups,
        "label_lanes": spec.label_lanes,
        "keep": spec.keep or "all",
        "radius": spec.radius,
        "presence": spec.presence,
        "penalty": spec.penalty,
        "label_weight": spec.label_weight,
        "reach": spec.reach,
        "wide_reach": spec.wide_reach,
        "label_reach": spec.label_reach,
        "bucket_reach": spec.bucket_reach,
        "mean_units": spec.mean_units,
    }


def sealed_findings(
    algorithm: VerticalJob,
    states: Iterable[tuple[IterateRow, SealedState]],
    *,
    is_open: bool,
) -> Findings:
    """Return what a report says of the rounds, and on which promise each release rests."""
    seen = list(states)
    found = whole_states(algorithm, seen, is_open=is_open)
    solver: SealedSolver = algorithm.solver
    state = seen[-1][1]
    summary = gram_part(solver, state)
    return replace(
        found,
        section=sealed_section(algorithm.spec),
        contribution=sealed_contribution(solver, state),
        promise=partial(sealed_promise, algorithm.spec, algorithm.job.delta),
        also={} if summary is None else {MOMENTS.section: summary},
    )


def solve_sealed(
    algorithm: VerticalJob, state: SealedState, penalty: str, numbers: Mapping[str, float]
) -> LinearModel:
    """Return the model under another penalty: a function of releases."""
    return model_under(algorithm, partial(solved, algorithm.solver, state), penalty, numbers)
