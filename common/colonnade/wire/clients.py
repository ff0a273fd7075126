"""Between what a party's clients are asked and answer, and the messages that carry it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from google.protobuf.message import DecodeError

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput
from colonnade.optim.admm.spec import DISPLACEMENT, MAX_V
from colonnade.privacy.ledger import Released
from colonnade.v1 import federation_pb2, job_pb2, release_pb2
from colonnade.wire.jobspec import refuse_unknown


@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """What a party's clients are asked; clients are numbered in the party's own order."""

    clients: IntArray
    rounds: IntArray  # in which each question was made
    points: IntArray  # (clients, dim), in grid steps


@dataclass(frozen=True, slots=True)
class Replies:
    """What a party's clients answer: releases by client, and who will answer nothing more."""

    released: Mapping[int, Released]
    declined: Sequence[int] = ()

    def __iter__(self) -> Iterator[Released]:
        return iter(self.released.values())


@dataclass(frozen=True, slots=True)
class Said:
    """What a message says that a party's clients answer: by client, round and body."""

    answers: Mapping[int, tuple[int, bytes]]
    declined: tuple[int, ...] = ()

    def plus(self, other: "Said") -> "Said":
        """Return what was said on two occasions; no client answers on both."""
        declined = dict.fromkeys((*self.declined, *other.declined))
        return Said({**self.answers, **other.answers}, tuple(declined))


def questions_to_bytes(asked: Questions) -> bytes:
    """Encode a task."""
    body = job_pb2.TaskBody()
    body.admm_step.clients.extend(asked.clients.tolist())
    body.admm_step.rounds.extend(asked.rounds.tolist())
    body.admm_step.points = asked.points.astype("<i8").tobytes()
    return body.SerializeToString(deterministic=True)


def questions_from_bytes(body: bytes, *, n_clients: int, dim: int) -> Questions:
    """Decode a task that fits a party's clients, or refuse it."""
    try:
        message = job_pb2.TaskBody.FromString(body)
    except DecodeError:
        raise BadInput("a task cannot be read") from None
    refuse_unknown(message, "a task")
    if message.WhichOneof("task") != "admm_step":
        raise BadInput("a task is not of a job over clients; update the older program")
    step = message.admm_step
    clients, rounds = np.array(step.clients, np.int64), np.array(step.rounds, np.int64)
    if rounds.size != clients.size or len(step.points) != 8 * clients.size * dim:
        raise BadInput(f"a task's points are not of the job's size {dim}")
    if np.any(rounds < 1):
        raise BadInput("a task has a question of no round")
    if np.unique(clients).size != clients.size or np.any(clients >= n_clients):
        raise BadInput(f"a task asks a client twice or one beyond the party's {n_clients}")
    points = np.frombuffer(step.points, "<i8").reshape(clients.size, dim).astype(np.int64)
    if points.size and (int(points.max()) > MAX_V or int(points.min()) < -MAX_V):
        raise BadInput("an entry of a task is too large")
    return Questions(clients, rounds, points)


def replies_to_proto(replies: Replies) -> federation_pb2.ClientAnswers:
    """Encode answers; one receipt, the newest, covers them all."""
    message = federation_pb2.ClientAnswers(declined=replies.declined)
    releases = list(replies.released.values())
    message.clients.extend(replies.released)
    message.rounds.extend(released.key.round for released in releases)
    message.bodies.extend(released.body for released in releases)
    if releases:
        receipt = max((released.receipt for released in releases), key=lambda each: each.seq)
        keys = [released.key.digest() for released in releases]
        message.newest, message.account = keys.index(receipt.key_sha256), receipt.account
        message.receipt.ledger_id, message.receipt.seq = receipt.ledger_id, receipt.seq
        message.receipt.chain_hash, message.receipt.spent_units = receipt.chain_hash, receipt.spent
        message.receipt.signature = receipt.signature
    return message


def said_from_proto(message: federation_pb2.ClientAnswers) -> Said:
    """Decode answers."""
    clients = list(message.clients)
    if len(message.rounds) != len(clients) or len(message.bodies) != len(clients):
        raise BadInput("an answer has other numbers of clients, rounds and bodies")
    if len({*clients, *message.declined}) != len(clients) + len(message.declined):
        raise BadInput("an answer names a client twice")
    pairs = zip(message.rounds, message.bodies, strict=True)
    return Said(dict(zip(clients, pairs, strict=True)), tuple(message.declined))


def only(submission: federation_pb2.Submission, clients: Collection[int]) -> bytes:
    """Return the bytes of a submission with the answers of ``clients`` alone, and no receipt."""
    kept = federation_pb2.Submission(job_id=submission.job_id, round=submission.round)
    said = submission.clients
    kept.clients.declined.extend(said.declined)
    for client, round_, body in zip(said.clients, said.rounds, said.bodies, strict=True):
        if client in clients:
            kept.clients.clients.append(client)
            kept.clients.rounds.append(round_)
            kept.clients.bodies.append(body)
    return kept.SerializeToString(deterministic=True)


def newest_release(submission: federation_pb2.Submission) -> release_pb2.Release | None:
    """Return the release that the receipt speaks of, whole; None if there is none."""
    message = submission.clients
    if not message.bodies:
        return None
    if message.newest >= min(len(message.bodies), len(message.rounds)):
        raise BadInput("an answer's receipt speaks of a release that is not there")
    key = release_pb2.ReleaseKey(
        job_id=submission.job_id,
        round=message.rounds[message.newest],
        kind=DISPLACEMENT,
        account=message.account,
    )
    return release_pb2.Release(
        key=key, body=message.bodies[message.newest], receipt=message.receipt
    )
