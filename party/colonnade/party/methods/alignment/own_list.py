"""A party's own list on its way: points to send, tags of what came back, rows and their check."""

import hashlib

import numpy as np

from colonnade.core.errors import BadMessage, DatasetChanged
from colonnade.ledger.receipts import Signer
from colonnade.methods.alignment import codec, sizes
from colonnade.methods.alignment.crypto import exchange
from colonnade.methods.alignment.crypto.canary import Rows, canary_ids, row_mac, same_mac
from colonnade.methods.alignment.crypto.chain import Segment, extend
from colonnade.methods.alignment.crypto.curve import hash_to_curve, multiply
from colonnade.methods.alignment.crypto.points import POINT_BYTES, Points, points_from_bytes
from colonnade.methods.alignment.schedule import Visit
from colonnade.methods.alignment.spec import AlignmentSpec
from colonnade.party.methods.alignment.lists import ListedPeople, PartyList, canary_rows
from colonnade.party.methods.alignment.state import PartyState, Secrets
from colonnade.v1 import alignment_pb2 as pb


class OwnList:
    """The list of one party in one run. All of it follows from the state, so a retry repeats it."""

    def __init__(
        self, spec: AlignmentSpec, place: int, run: bytes, signer: Signer, people: ListedPeople
    ) -> None:
        self._spec, self._place, self._run = spec, place, run
        self._signer, self._people = signer, people
        self._made: PartyList | None = None

    def own(self, state: PartyState, secrets: Secrets, visit: Visit) -> Segment:
        """Return a chunk's points under the blind, signed."""
        ids = self.made(state, secrets).ids_at(*self._range(visit))
        points = multiply(secrets.scalars.blind, hash_to_curve(_domain(self._run), ids))
        return extend(self._signer, self._run, visit, points.tobytes(), ())

    def tags(self, state: PartyState, secrets: Secrets, visit: Visit, segment: Segment) -> bytes:
        """Return the tags of a chunk that has been with everybody, with old rows if it extends."""
        points = points_from_bytes(segment.points)
        start = hashlib.sha256(b"colonnade alignment tag v1\0" + self._run)
        tags = np.empty((len(points), sizes.TAG_BYTES), np.uint8)

        def hash_(first: int, products: Points) -> None:
            raw, made = products.tobytes(), bytearray()
            for at in range(0, len(raw), POINT_BYTES):
                tag = start.copy()
                tag.update(raw[at : at + POINT_BYTES])
                made += tag.digest()[: sizes.TAG_BYTES]
            tags[first : first + len(products)] = np.frombuffer(made, np.uint8).reshape(
                -1, sizes.TAG_BYTES
            )

        multiply(secrets.scalars.unblind, points, take=hash_)
        message = pb.AlignmentTags(chunk=visit.chunk, tags=tags.tobytes())
        if self._spec.extends is not None:
            old = self.made(state, secrets).old_rows_at(*self._range(visit))
            message.old_rows = old.astype("<u4").tobytes()
        return codec.to_bytes(message)

    def assigned(self, state: PartyState, secrets: Secrets) -> Rows:
        """Return the rows of people, dummies and canaries; refuse impossible ones."""
        before = self._spec.extends.n_rows if self._spec.extends else 0
        most = before + sum(state.counts) + self._spec.noise.phantoms().most
        if state.kept > state.n_rows:
            raise BadMessage("jobs would use more rows than there are")
        told = np.frombuffer(state.list_rows, "<u4")
        return self.made(state, secrets).assign(told, n_rows=state.n_rows, most=most)

    def mac(
        self, state: PartyState, secrets: Secrets, rows: Rows, other: int, *, sends: bool
    ) -> bytes:
        """Return what one of two parties tells the other of the rows of their canaries."""
        mine, n_canaries = self._place, self._spec.n_canaries
        return row_mac(
            self.pair(state, secrets, other),
            sender=mine if sends else other,
            receiver=other if sends else mine,
            n_rows=state.n_rows,
            kept=state.kept,
            rows=canary_rows(rows, mine=mine, other=other, n_canaries=n_canaries),
        )

    def pair(self, state: PartyState, secrets: Secrets, other: int) -> exchange.PairKeys:
        """Return the keys that this party has with another."""
        return exchange.pair_keys(secrets.exchange, self._run, state.keys, self._place, other)

    def made(self, state: PartyState, secrets: Secrets) -> PartyList:
        """Return the whole list and its order, made once for a process."""
        if self._made is None:
            if not same_mac(self._people.mac(secrets.seed), state.ids_mac):
                raise DatasetChanged(
                    "the party's ids are not those that the alignment began with; bring them back, "
                    "or cancel the alignment and start another"
                )
            canaries = [
                each
                for other in range(self._spec.n_parties)
                if other != self._place
                for each in canary_ids(self.pair(state, secrets, other))
            ]
            self._made = PartyList.of(self._people, secrets.dummies, canaries, seed=secrets.seed)
        return self._made

    def forget(self) -> None:
        """Drop the list, whose dummies and canaries are secret, at the end of the run."""
        self._made = None

    def _range(self, visit: Visit) -> tuple[int, int]:
        return visit.chunk * self._spec.chunk, (visit.chunk + 1) * self._spec.chunk


def _domain(run: bytes) -> bytes:
    return b"colonnade alignment id v1\0" + run
