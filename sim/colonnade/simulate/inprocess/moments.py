"""A moments job in one process: the shipped steps of both sides, without wire or processes."""

from colonnade.methods.moments.solver.steps import MomentsSolver, MomentsState
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.party.methods.moments import MomentsParty
from colonnade.privacy.sampling import NoiseSource
from colonnade.simulate.inprocess.vertical import Data, ScaledModel, make_parties


def parties(data: Data, spec: MomentsSpec, job: str, noise: NoiseSource) -> dict[str, MomentsParty]:
    """Make the parties of a moments job."""
    return make_parties(data, spec, spec.parts, job=job, noise=noise, make=MomentsParty)


def run(
    data: Data, spec: MomentsSpec, noise: NoiseSource, *, job: str = "job"
) -> tuple[MomentsState, dict[str, MomentsParty]]:
    """Run all rounds and return the last state and the parties."""
    solver, members = MomentsSolver(spec, job), parties(data, spec, job, noise)
    state = solver.start()
    while not solver.finished(state):
        answers = {}
        for name, task in solver.tasks(state).items():
            released = members[name].answer(task, b"%d" % task.round)
            answers[name] = {release.key.kind: release.body for release in released}
            solver.check(state, name, answers[name])
        state = solver.absorb(state, answers)
    return state, members


def fit(data: Data, spec: MomentsSpec, noise: NoiseSource, *, job: str = "job") -> ScaledModel:
    """Run a job and return its model."""
    state, _ = run(data, spec, noise, job=job)
    return model_of(spec, state)


def model_of(spec: MomentsSpec, state: MomentsState) -> ScaledModel:
    """Return the model of a state."""
    solver = MomentsSolver(spec, "")  # the job's name matters to sketches only
    return ScaledModel(list(solver.coefficients(state).values()), solver.intercept(state))
