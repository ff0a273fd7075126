"""Between the state of a sealed job and its bytes.

What is on its way between parties is megabytes and of use for a round or two. So a state is stored
as a change of the one before: a body that was there already is named and not written again.
"""

import numpy as np

from colonnade.methods.sealed.kinds import REPLIES, SEALED, parsed
from colonnade.methods.sealed.solver.steps import SealedState
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.v1 import job_pb2


def encode_state(
    spec: SealedSpec, state: SealedState, *, since: SealedState | None = None
) -> bytes:
    """Return the state's bytes; without what ``since`` has already of relayed bodies."""
    message = job_pb2.SealedState(round=state.round, intercept=state.intercept)
    for part in spec.parts:
        name = part.party
        held = message.parts.add(coef=state.coef[name].tolist(), kept=state.kept.get(name, ()))
        for kind, body in sorted(state.bodies[name].items()):
            known = since is not None and _relayed(kind) and since.bodies[name].get(kind) == body
            held.releases.add(kind=kind, body=b"" if known else body)
    return message.SerializeToString(deterministic=True)


def decode_state(spec: SealedSpec, body: bytes, *, since: SealedState | None = None) -> SealedState:
    """Return the state that the bytes stand for."""
    message = job_pb2.SealedState.FromString(body)
    held = dict(zip((part.party for part in spec.parts), message.parts, strict=True))
    before = {name: {} if since is None else since.bodies[name] for name in held}
    return SealedState(
        round=message.round,
        bodies={
            name: {
                release.kind: release.body or before[name][release.kind]
                for release in found.releases
            }
            for name, found in held.items()
        },
        kept={name: tuple(found.kept) for name, found in held.items() if found.kept},
        coef={name: np.array(found.coef, np.int64) for name, found in held.items()},
        intercept=message.intercept,
    )


def _relayed(kind: str) -> bool:
    return parsed(kind)[0] in (*SEALED, *REPLIES)
