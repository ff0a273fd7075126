"""The enrolled parties, as one process alone knows them or as several share them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from colonnade.server.store.base import PartyRow, Store


class Registry(Mapping[str, PartyRow]):
    """Parties by name; what is written here is in the store, in the open transaction.

    One process alone keeps all rows at hand. Where there are others, rows are read when they are
    needed, because any process may have changed them.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._shared = store, store.peers is not None
        self._rows: dict[str, PartyRow] = {}
        if not self._shared:
            self._rows = {row.name: row for row in store.parties()}

    def __getitem__(self, name: str) -> PartyRow:
        found = self._store.party(name) if self._shared else self._rows.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter([row.name for row in self._store.parties()] if self._shared else self._rows)

    def __len__(self) -> int:
        return len(self._store.parties() if self._shared else self._rows)

    def put(self, row: PartyRow) -> None:
        """Write a party that enrols."""
        self._store.put_party(row)
        self.note(row)

    def open_session(self, row: PartyRow) -> None:
        """Write a party's new session, in this process."""
        if (peers := self._store.peers) is not None:
            row = replace(row, process=peers.process)
        self._store.open_session(row)
        self.note(row)

    def close_session(self, party: str, epoch: int) -> None:
        """Note that a session is over; one process alone has no need to write that."""
        if self._shared:
            self._store.close_session(replace(self[party], epoch=epoch))

    def put_standing(self, row: PartyRow) -> None:
        """Write what a party told in its session."""
        self._store.put_standing(row)
        self.note(row)

    def put_newest(self, rows: Iterable[PartyRow]) -> None:
        """Write parties' newest releases."""
        self._store.put_newest(rows)

    def note(self, row: PartyRow) -> None:
        """Keep a row at hand whose change is written later, or was."""
        if not self._shared:
            self._rows[row.name] = row
