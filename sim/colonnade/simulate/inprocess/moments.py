"""A moments job in one process: the shipped steps of both sides, without wire or processes."""

from colonnade.methods.moments.solver.steps import MomentsSolver, MomentsState
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.party.methods.moments import MomentsParty
from colonnade.privacy.sampling import NoiseSource
from colonnade.simulate.inprocess.vertical import (
    Data,
    ScaledModel,
    make_parties,
    run_rounds,
    scaled_model,
)


def parties(data: Data, spec: MomentsSpec, job: str, noise: NoiseSource) -> dict[str, MomentsParty]:
    """Make the parties of a moments job."""
    return make_parties(data, spec, spec.parts, job=job, noise=noise, make=MomentsParty)


def run(
    data: Data, spec: MomentsSpec, noise: NoiseSource, *, job: str = "job"
) -> tuple[MomentsState, dict[str, MomentsParty]]:
    """Run all rounds and return the last state and the parties."""
    members = parties(data, spec, job, noise)
    state = run_rounds(MomentsSolver(spec, job), members, MomentsParty.answer)
    return state, members


def fit(data: Data, spec: MomentsSpec, noise: NoiseSource, *, job: str = "job") -> ScaledModel:
    """Run a job and return its model."""
    state, _ = run(data, spec, noise, job=job)
    return model_of(spec, state)


def model_of(spec: MomentsSpec, state: MomentsState) -> ScaledModel:
    """Return the model of a state."""
    return scaled_model(MomentsSolver(spec, ""), state)  # the name matters to sketches only
