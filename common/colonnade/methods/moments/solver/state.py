"""Between the state of a moments job and its bytes."""

import numpy as np

from colonnade.methods.frank_wolfe.spec import decode_choice, encode_choice
from colonnade.methods.moments.solver.steps import MomentsState
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.v1 import job_pb2


def encode_state(spec: MomentsSpec, state: MomentsState) -> bytes:
    """Return the state's bytes."""
    message = job_pb2.MomentsState(round=state.round, intercept=state.intercept)
    for part in spec.parts:
        name = part.party
        basis = state.basis.get(name, np.zeros(0, np.int64))
        held = message.parts.add(coef=state.coef[name].tolist(), basis=basis.ravel().tolist())
        held.choices.extend(encode_choice(*choice) for choice in state.choices[name])
        for kind, body in sorted(state.bodies[name].items()):
            held.releases.add(kind=kind, body=body)
    return message.SerializeToString(deterministic=True)


def decode_state(spec: MomentsSpec, body: bytes) -> MomentsState:
    """Return the state that the bytes stand for."""
    message = job_pb2.MomentsState.FromString(body)
    held = dict(zip(spec.parts, message.parts, strict=True))
    return MomentsState(
        round=message.round,
        bodies={
            part.party: {release.kind: release.body for release in found.releases}
            for part, found in held.items()
        },
        choices={
            part.party: tuple(decode_choice(each, len(part.features)) for each in found.choices)
            for part, found in held.items()
        },
        basis={
            part.party: np.array(found.basis, np.int64).reshape(-1, spec.kept(part) + 1)
            for part, found in held.items()
            if found.basis
        },
        coef={part.party: np.array(found.coef, np.int64) for part, found in held.items()},
        intercept=message.intercept,
    )
