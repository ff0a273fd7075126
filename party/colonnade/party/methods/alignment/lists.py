"""A party's list in an alignment: its people, dummies and canaries, in a random order."""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage
from colonnade.methods.alignment.crypto.canary import Rows
from colonnade.methods.alignment.crypto.dummies import PatternDummies
from colonnade.methods.alignment.crypto.shuffle import permutation
from colonnade.methods.alignment.refusals import RepeatedIds, UnusableIds
from colonnade.methods.alignment.spec import CANARIES, NO_ROW, AlignmentSpec


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a party has of an earlier alignment.

    ``rows`` are those of the ids that it brings now, ``NO_ROW`` for new ones.
    """

    rows: Rows
    carried: Sequence[bytes]
    carried_rows: Rows


@dataclass(frozen=True, slots=True)
class ListedPeople:
    """The ids that a party brings, and their rows in an earlier alignment, ``NO_ROW`` if new.

    An extension also carries over the earlier runs' dummies and canaries, with their rows.
    """

    ids: Sequence[bytes]
    old_rows: Rows
    carried: Sequence[bytes] = ()
    carried_rows: Rows = field(default_factory=lambda: np.empty(0, np.uint32))

    @classmethod
    def of(cls, ids: Sequence[bytes], earlier: "Earlier | None") -> "ListedPeople":
        """Return people who are all new unless there was an earlier alignment."""
        if earlier is None:
            return cls(ids, np.full(len(ids), NO_ROW, np.uint32))
        return cls(ids, earlier.rows, earlier.carried, earlier.carried_rows)

    @property
    def all_old_rows(self) -> Rows:
        """Earlier rows of ids and of what is carried over."""
        return np.concatenate([self.old_rows, self.carried_rows])

    def __len__(self) -> int:
        return len(self.ids) + len(self.carried)

    def check(self, spec: AlignmentSpec, place: int) -> None:
        """Refuse a list that the specification does not allow, before anything is drawn."""
        count, most = len(self.ids), spec.parts[place].max_people
        if not 1 <= count <= most:
            raise UnusableIds(f"the list has {count} people; the specification allows 1 to {most}")
        if repeated := count - len(set(self.ids)):
            raise RepeatedIds(f"{repeated} ids of the list occur in it before; prepare it first")
        if len(self.old_rows) != count or len(self.carried) != len(self.carried_rows):
            raise ValueError("there must be one earlier row for each id")
        kept = self.all_old_rows[self.all_old_rows != NO_ROW]
        if spec.extends is None:
            if kept.size:
                raise ValueError("only an extension has earlier rows")
            return
        if np.unique(kept).size != kept.size or bool((kept >= spec.extends.n_rows).any()):
            raise UnusableIds("the earlier rows are not those of the alignment that is extended")

    def mac(self, seed: bytes) -> bytes:
        """Return a keyed digest, by which a restarted party knows that it has the same people."""
        digest = hashlib.sha256(self.all_old_rows.astype("<u4").tobytes())
        for each in (*self.ids, *self.carried):
            digest.update(len(each).to_bytes(4, "big") + each)
        return hmac.digest(seed, b"ids" + digest.digest(), "sha256")


@dataclass(frozen=True, slots=True)
class PartyList:
    """People, dummies (those carried over first) and canaries, with the order of sending.

    The order is random and has nothing to do with that of the party's table.
    """

    people: ListedPeople
    entries: list[bytes]
    order: IntArray

    @classmethod
    def of(
        cls,
        people: ListedPeople,
        dummies: Iterable[PatternDummies],
        canaries: Iterable[bytes],
        *,
        seed: bytes,
    ) -> "PartyList":
        """Return the list; a real id begins with byte 0, a dummy's with 1, a canary's with 2."""
        entries = [*(b"\0" + each for each in people.ids), *people.carried]
        for each in sorted(dummies, key=lambda d: d.pattern):
            entries += each.ids()
        entries += canaries
        return cls(people, entries, permutation(seed, b"order", len(entries)))

    def ids_at(self, first: int, last: int) -> list[bytes]:
        """Return what is sent at the places ``first .. last`` of the list."""
        return [self.entries[at] for at in self.order[first:last]]

    def old_rows_at(self, first: int, last: int) -> Rows:
        """Return the earlier rows of what is sent at these places."""
        rows = np.full(len(self.entries), NO_ROW, np.uint32)
        rows[: len(self.people)] = self.people.all_old_rows
        return rows[self.order[first:last]]

    def assign(self, told: Rows, *, n_rows: int, most: int) -> Rows:
        """Return the rows of people, dummies and canaries; refuse impossible ones.

        Parameters
        ----------
        told
            Rows in the order in which the list was sent.
        most
            The most rows that all lists together can fill.
        """
        if told.size != len(self.entries) or n_rows > most or bool((told >= n_rows).any()):
            raise BadMessage("the rows are more than all lists together can fill")
        if np.unique(told).size != told.size:
            raise BadMessage("two ids of this party were given one row")
        rows = np.empty(told.size, np.uint32)
        rows[self.order] = told
        old = self.people.all_old_rows
        if bool((rows[: len(old)][old != NO_ROW] != old[old != NO_ROW]).any()):
            raise BadMessage("the extension moves people who had a row")
        return rows


def canary_rows(rows: Rows, *, mine: int, other: int, n_canaries: int) -> Rows:
    """Return the rows of the canaries that this party shares with another."""
    number = other if other < mine else other - 1
    first = rows.size - n_canaries + CANARIES * number
    return rows[first : first + CANARIES]
