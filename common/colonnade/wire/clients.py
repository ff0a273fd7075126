"""Between what a party's clients are asked and answer, and the messages that carry it."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage
from colonnade.ledger.ledger import Released
from colonnade.methods.admm.spec import DISPLACEMENT, MAX_V
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


@dataclass(frozen=True, slots=True, eq=False)
class ClientAnswers:
    """What clients answer: for each of ``clients`` the round of its question, and the body."""

    clients: IntArray
    rounds: IntArray
    bodies: Sequence[bytes]
    declined: IntArray  # clients that will answer nothing more

    def by_client(self) -> Mapping[int, tuple[int, bytes]]:
        """Return rounds and bodies by client."""
        pairs = zip(self.rounds.tolist(), self.bodies, strict=True)
        return dict(zip(self.clients.tolist(), pairs, strict=True))

    def only(self, wanted: NDArray[np.bool_]) -> "ClientAnswers":
        """Return the answers that are ``wanted``, and all declines."""
        if wanted.all():
            return self
        bodies = list(itertools.compress(self.bodies, wanted.tolist()))
        return ClientAnswers(self.clients[wanted], self.rounds[wanted], bodies, self.declined)

    def shifted(self, first: int) -> "ClientAnswers":
        """Return the same with other numbers for the clients, beginning at ``first``."""
        return ClientAnswers(self.clients + first, self.rounds, self.bodies, self.declined + first)


def concat(*parts: ClientAnswers) -> ClientAnswers:
    """Return what was said on several occasions; no client answers on two of them."""
    nobody = np.empty(0, np.int64)
    return ClientAnswers(
        np.concatenate([nobody, *(said.clients for said in parts)]),
        np.concatenate([nobody, *(said.rounds for said in parts)]),
        [body for said in parts for body in said.bodies],
        np.unique(np.concatenate([nobody, *(said.declined for said in parts)])),
    )


def questions_to_bytes(asked: Questions) -> bytes:
    """Encode a task."""
    body = job_pb2.TaskBody()
    body.admm_step.clients.extend(asked.clients.tolist())
    body.admm_step.rounds.extend(asked.rounds.tolist())
    body.admm_step.points = asked.points.astype("<i8", copy=False).tobytes()
    return body.SerializeToString(deterministic=True)


def without_points(task: bytes) -> bytes:
    """Return a task that says whom it asks and no more: its points follow from the job's state."""
    body = job_pb2.TaskBody.FromString(task)
    body.admm_step.ClearField("points")
    return body.SerializeToString(deterministic=True)


def asked_in(task: bytes) -> tuple[IntArray, IntArray]:
    """Return whom a task of one's own asks, and the rounds that the questions were made in."""
    step = job_pb2.TaskBody.FromString(task).admm_step
    return np.array(step.clients, np.int64), np.array(step.rounds, np.int64)


def questions_from_bytes(body: bytes, *, n_clients: int, dim: int) -> Questions:
    """Decode a task that fits a party's clients, or refuse it."""
    try:
        message = job_pb2.TaskBody.FromString(body)
    except DecodeError:
        raise BadMessage("a task cannot be read") from None
    refuse_unknown(message, "a task")
    if message.WhichOneof("task") != "admm_step":
        raise BadMessage("a task is not of a job over clients; update the older program")
    step = message.admm_step
    clients, rounds = np.array(step.clients, np.int64), np.array(step.rounds, np.int64)
    if rounds.size != clients.size or len(step.points) != 8 * clients.size * dim:
        raise BadMessage(f"a task's points are not of the job's size {dim}")
    if np.any(rounds < 1):
        raise BadMessage("a task has a question of no round")
    if np.unique(clients).size != clients.size or np.any(clients >= n_clients):
        raise BadMessage(f"a task asks a client twice or one beyond the party's {n_clients}")
    points = np.frombuffer(step.points, "<i8").reshape(clients.size, dim).astype(np.int64)
    if points.size and (int(points.max()) > MAX_V or int(points.min()) < -MAX_V):
        raise BadMessage("an entry of a task is too large")
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
        message.account = receipt.account
        message.newest = next(
            place
            for place, released in enumerate(releases)
            if released.key.account == receipt.account
            and released.key.digest() == receipt.key_sha256
        )
        message.receipt.ledger_id, message.receipt.seq = receipt.ledger_id, receipt.seq
        message.receipt.chain_hash, message.receipt.spent_units = receipt.chain_hash, receipt.spent
        message.receipt.signature = receipt.signature
    return message


def client_answers_from_proto(message: federation_pb2.ClientAnswers) -> ClientAnswers:
    """Decode answers."""
    clients, rounds = np.array(message.clients, np.int64), np.array(message.rounds, np.int64)
    declined, bodies = np.array(message.declined, np.int64), list(message.bodies)
    if rounds.size != clients.size or len(bodies) != clients.size:
        raise BadMessage("an answer has other numbers of clients, rounds and bodies")
    if len({*message.clients, *message.declined}) != clients.size + declined.size:
        raise BadMessage("an answer names a client twice")
    return ClientAnswers(clients, rounds, bodies, declined)


def client_answers_to_bytes(job_id: str, round_: int, said: ClientAnswers) -> bytes:
    """Encode answers as a submission without a receipt: what is kept of one."""
    kept = federation_pb2.Submission(job_id=job_id, round=round_)
    kept.clients.declined.extend(said.declined.tolist())
    kept.clients.clients.extend(said.clients.tolist())
    kept.clients.rounds.extend(said.rounds.tolist())
    kept.clients.bodies.extend(said.bodies)
    return kept.SerializeToString(deterministic=True)


def newest_release(submission: federation_pb2.Submission) -> release_pb2.Release | None:
    """Return the release that the receipt speaks of, whole; None if there is none."""
    message = submission.clients
    if not message.bodies:
        return None
    if message.newest >= min(len(message.bodies), len(message.rounds)):
        raise BadMessage("an answer's receipt speaks of a release that is not there")
    key = release_pb2.ReleaseKey(
        job_id=submission.job_id,
        round=message.rounds[message.newest],
        kind=DISPLACEMENT,
        account=message.account,
    )
    return release_pb2.Release(
        key=key, body=message.bodies[message.newest], receipt=message.receipt
    )
