"""Answers of a cohort: what the clients of one party answer in a round, and their messages."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage
from colonnade.ledger.ledger import Released
from colonnade.v1 import federation_pb2, release_pb2
from colonnade.wire.codec import receipt_to_proto


@dataclass(frozen=True, slots=True)
class Replies:
    """What a party's clients answer, as the party sends it, and who will answer nothing more."""

    kind: str  # of all releases
    released: Mapping[int, Released]  # by client, numbered in the party's own order
    declined: Sequence[int] = ()

    def __iter__(self) -> Iterator[Released]:
        return iter(self.released.values())

    def put_into(self, submission: federation_pb2.Submission) -> None:
        """Write the answers into a submission; one receipt, the newest, covers them all."""
        message, releases = submission.clients, list(self)
        message.kind = self.kind
        message.declined.extend(self.declined)
        message.clients.extend(self.released)
        message.rounds.extend(released.key.round for released in releases)
        message.bodies.extend(released.body for released in releases)
        if not releases:
            return
        receipt = max((released.receipt for released in releases), key=lambda each: each.seq)
        message.account = receipt.account
        message.newest = next(
            place
            for place, released in enumerate(releases)
            if released.key.account == receipt.account
            and released.key.digest() == receipt.key_sha256
        )
        message.receipt.CopyFrom(receipt_to_proto(receipt))


@dataclass(frozen=True, slots=True, eq=False)
class ClientAnswers:
    """What clients answer, as the coordinator keeps it: for each the round of its question."""

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


def client_answers_from_proto(message: federation_pb2.ClientAnswers) -> ClientAnswers:
    """Decode answers."""
    clients, rounds = np.array(message.clients, np.int64), np.array(message.rounds, np.int64)
    declined, bodies = np.array(message.declined, np.int64), list(message.bodies)
    if rounds.size != clients.size or len(bodies) != clients.size:
        raise BadMessage("an answer has other numbers of clients, rounds and bodies")
    if len({*message.clients, *message.declined}) != clients.size + declined.size:
        raise BadMessage("an answer names a client twice")
    return ClientAnswers(clients, rounds, bodies, declined)


def client_answers_to_bytes(submission: federation_pb2.Submission, said: ClientAnswers) -> bytes:
    """Encode some of a submission's answers without a receipt: what is kept of it."""
    kept = federation_pb2.Submission(job_id=submission.job_id, round=submission.round)
    kept.clients.kind = submission.clients.kind
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
        kind=message.kind,
        account=message.account,
    )
    return release_pb2.Release(
        key=key, body=message.bodies[message.newest], receipt=message.receipt
    )
