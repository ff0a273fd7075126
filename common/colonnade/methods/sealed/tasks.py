"""What a party is asked in a round of a sealed job, and what peers sign.

A task carries maps of rows, which are bounded integers, and what other parties sealed or replied,
as they sent it. The coordinator only relays that: every body ends in a signature by its sender's
ledger key over job, round, sender, kind, all bytes before it and, of a reply, the digest of what it
replies to. Receivers hold their peers' keys pinned, so that no relay plays a peer.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from colonnade.core.errors import BadMessage
from colonnade.ledger.entries import canonical
from colonnade.linear.ball import Projection
from colonnade.methods.base import Part
from colonnade.methods.sealed.kinds import LABEL, WIDE, SealedStage, parsed
from colonnade.methods.sealed.spec import SealedSpec

_STATEMENT = b"colonnade sealed v2\0"


@dataclass(frozen=True, slots=True)
class Relayed:
    """A body of another party, as it was received."""

    party: str
    kind: str
    body: bytes


@dataclass(frozen=True, slots=True)
class SealedTask:
    """One round's question to one party; which parts it has follows from the round's stage."""

    round: int
    projection: Projection | None = None  # of features, with the label where it is held
    label: Projection | None = None  # of the label alone
    relayed: tuple[Relayed, ...] = ()


def statement(
    *, job: str, round_: int, party: str, kind: str, payload: bytes, answers: str = ""
) -> bytes:
    """Return what a body's signature is made over.

    ``answers`` is the digest of the sealed bodies that a reply replies to, or empty.
    """
    facts = {
        "job": job,
        "round": round_,
        "party": party,
        "kind": kind,
        "payload_sha256": hashlib.sha256(payload).hexdigest(),
        "answers_sha256": answers,
    }
    return _STATEMENT + canonical(facts).encode()


def digest_of(bodies: Sequence[bytes]) -> str:
    """Return one digest of several bodies, in their order."""
    return hashlib.sha256(b"".join(hashlib.sha256(body).digest() for body in bodies)).hexdigest()


def check_task(spec: SealedSpec, part: Part, task: SealedTask) -> None:
    """Refuse a task that does not fit the job, before anything is charged."""
    stages = spec.stages()
    if not 0 <= task.round < len(stages):
        raise BadMessage(f"a task is for round {task.round} of a job of {len(stages)} rounds")
    stage, kinds = stages[task.round], spec.round_kinds(task.round, part)
    if not kinds:
        raise BadMessage(f"round {task.round} of this job asks nothing of this party")
    outputs: int | None = None
    if stage in (SealedStage.SEAL, SealedStage.REPLY):
        outputs = spec.n_gram(part)
    elif WIDE in kinds or stage is SealedStage.PRODUCTS:
        outputs = spec.n_wide(part)
    label = 1 if any(parsed(kind)[0] == LABEL for kind in kinds) else None
    columns = len(part.features) + part.holds_label
    for projection, count in ((task.projection, outputs), (task.label, label)):
        shape = None if projection is None else projection.coef.shape
        if shape != (None if count is None else (count, columns)):
            raise BadMessage("a task's projection has another size than the job's")
    relays = stage in (
        SealedStage.PRODUCTS,
        SealedStage.SCREEN,
        SealedStage.REPLY,
        SealedStage.OPEN,
    )
    if bool(task.relayed) != relays:
        raise BadMessage("a task relays bodies if and only if its round needs them")
