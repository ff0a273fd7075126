"""Moments as the engine sees them: states and tasks as bytes, prices, the model in real units."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from colonnade.data.model import LinearModel
from colonnade.methods.job import Job
from colonnade.methods.moments.codec import task_to_bytes
from colonnade.methods.moments.solver.contribution import moments_contribution
from colonnade.methods.moments.solver.solutions import moments_summary, solved
from colonnade.methods.moments.solver.state import decode_state, encode_state
from colonnade.methods.moments.solver.steps import MomentsSolver, MomentsState
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.server.methods.base import Findings, model_under, whole_states
from colonnade.server.methods.vertical import VerticalJob
from colonnade.server.store.base import IterateRow


def moments_job(job: Job, job_id: str, spec: MomentsSpec) -> VerticalJob:
    """Make the steps of ``job``, whose method is ``spec``."""
    return VerticalJob(
        job,
        job_id,
        spec,
        MomentsSolver(spec, job_id),
        task_to_bytes=task_to_bytes,
        encode=partial(encode_state, spec),
        decode=lambda body, since=None: decode_state(spec, body),  # noqa: ARG005 - it is whole
        cost=lambda party, kind, _round: spec.cost(party, kind),
        parameters=partial(_parameters, spec),
    )


def _parameters(spec: MomentsSpec) -> Mapping[str, Any]:
    return {
        "rounds": spec.rounds,
        "directions": spec.directions if spec.shares() else 0,
        "probes": spec.probes if spec.shares() else 0,
        "sketch_dim": spec.sketch_dim,
        "keep": spec.keep or "all",
        "radius": spec.radius,
        "presence": spec.presence,
        "penalty": spec.penalty,
        "label_weight": spec.label_weight,
        "reach": spec.reach,
        "share_clip": spec.share_clip,
        "probe_clip": spec.probe_clip,
        "cross_clip": spec.cross_clip,
        "mean_units": spec.mean_units,
        "label_units": spec.label_units,
        "marginal_units": spec.marginal_units,
        "screen_units": spec.screen_units,
        "gram_units": spec.gram_units,
        "share_units": spec.share_units,
        "cross_units": spec.cross_units,
    }


def moments_findings(
    algorithm: VerticalJob,
    states: Iterable[tuple[IterateRow, MomentsState]],
    *,
    is_open: bool,
) -> Findings:
    """Return what a report says of the rounds, and what else the releases tell."""
    seen = list(states)
    found = whole_states(algorithm, seen, is_open=is_open)
    solver: MomentsSolver = algorithm.solver
    last = seen[-1][1]
    return replace(
        found,
        section=moments_summary(solver, last),
        contribution=moments_contribution(solver, last),
    )


def solve_again(
    algorithm: VerticalJob, state: MomentsState, penalty: str, numbers: Mapping[str, float]
) -> LinearModel:
    """Return the model under another penalty: a function of releases."""
    return model_under(algorithm, partial(solved, algorithm.solver, state), penalty, numbers)
