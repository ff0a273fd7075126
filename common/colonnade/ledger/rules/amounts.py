"""Amounts by account in a few bytes each: a host's ledger may have a million clients.

What a job sets aside is the same for nearly every client, so each table of amounts keeps a byte for
a client's account and every differing amount once. Which account has which place is kept once for
all tables of a ledger. Accounts with other names than those of clients are few, in a dictionary.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar, overload

import numpy as np

_HEX, _KEY = 32, 16  # a client's account is named by so many hexadecimal digits, of so many bytes
_FIRST_SLOTS = 16
_WIDER = {"B": "H", "H": "I", "I": "Q"}
_MANY_VALUES = 250
T = TypeVar("T")


class ClientNames:
    """The clients' accounts that entries have named, numbered as they came: some 25 bytes each.

    An open-addressing hash table. The hash is Python's keyed one, so that whoever makes up the
    names in an export cannot make them collide.
    """

    __slots__ = ("_keys", "_last", "_slots")

    def __init__(self) -> None:
        self._keys = bytearray()  # of each place
        self._slots = array("I", bytes(4 * _FIRST_SLOTS))  # 1 + place, or 0
        self._last = ("", -1)  # the rules look one account up several times

    def __len__(self) -> int:
        return len(self._keys) // _KEY

    def __getitem__(self, place: int) -> str:
        return self._keys[place * _KEY : (place + 1) * _KEY].hex()

    def find(self, name: str) -> int:
        """Return the place of a client's account; -1 if there is none, or it is no client's."""
        last, place = self._last
        if name is last:
            return place
        return -1 if (key := _key(name)) is None else self._find(name, key)

    def _find(self, name: str, key: bytes) -> int:
        slots, keys = self._slots, self._keys
        slot, mask = hash(key), len(slots) - 1
        while found := slots[slot & mask]:
            place = found - 1
            if keys[place * _KEY : found * _KEY] == key:
                self._last = (name, place)
                return place
            slot += 1
        return -1

    def add(self, name: str) -> int:
        """Return the place of a client's account that may be new; -1 if it is no client's."""
        last, place = self._last
        if name is last:
            return place
        if (key := _key(name)) is None or (place := self._find(name, key)) >= 0:
            return -1 if key is None else place
        place = len(self)
        self._keys += key
        if 3 * len(self) > 2 * len(self._slots):
            slots = array("I", bytes(8 * len(self._slots)))
            for old in range(len(self)):
                _put(slots, bytes(self._keys[old * _KEY : (old + 1) * _KEY]), old)
            self._slots = slots  # whoever is looking something up goes on in the old ones
        else:
            _put(self._slots, key, place)
        self._last = (name, place)
        return place


class _Coded(NamedTuple):
    """Amounts by place; whoever reads has both parts of one time."""

    codes: "array[int]"  # which of the values, or 0 without one
    values: list[int]


class Amounts(Mapping[str, int]):
    """What accounts have: first the account that came first."""

    __slots__ = ("_code_of", "_coded", "_count", "_few", "_first", "_many", "_names")

    def __init__(self, names: ClientNames, items: Iterable[tuple[str, int]] = ()) -> None:
        self._names, self._few, self._first = names, dict[str, int](), ""
        self._coded, self._code_of = _Coded(array("B"), [0]), dict[int, int]()
        self._count, self._many = 0, _MANY_VALUES
        for name, units in items:
            self[name] = units

    def __len__(self) -> int:
        return len(self._few) + self._count

    def __iter__(self) -> Iterator[str]:
        codes, first = self._coded.codes, self._first
        if len(self):
            yield first
        yield from (name for name in [*self._few] if name != first)
        for place in range(len(codes)):
            if codes[place] and (name := self._names[place]) != first:
                yield name

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __getitem__(self, name: str) -> int:
        if (found := self.get(name)) is None:
            raise KeyError(name)
        return found

    @overload
    def get(self, name: str, /) -> int | None: ...

    @overload
    def get(self, name: str, /, default: int | T) -> int | T: ...

    def get(self, name: str, /, default: int | T | None = None) -> int | T | None:
        """Return what an account has."""
        codes, values = self._coded
        if (place := self._names.find(name)) < 0:
            return self._few.get(name, default)
        if place < len(codes) and (code := codes[place]):
            return values[code]
        return default

    def __setitem__(self, name: str, units: int) -> None:
        if not self._count and not self._few:
            self._first = name
        if (place := self._names.add(name)) < 0:
            self._few[name] = units
            return
        if len(self._coded.values) >= self._many:
            self._forget_unused()
        code, codes = self._code(units), self._coded.codes
        self._make_room(place)
        self._count += not codes[place]
        codes[place] = code

    def add_to_each(self, accounts: Sequence[str], places: Sequence[int], units: int) -> None:
        """Add to what each of many accounts has; one without an amount had nothing.

        ``places`` are those of the accounts, as `ClientNames.add` returned them.
        """
        if len(self._coded.values) >= self._many:
            self._forget_unused()
        self._make_room(max(places))
        codes, values = self._coded
        there = {codes[at] for at in places if at >= 0}
        later = {code: self._code(values[code] + units) for code in there}
        codes = self._coded.codes
        if not self._count and not self._few:
            self._first = accounts[0]
        for account, place in zip(accounts, places, strict=True):
            if place < 0:
                self._few[account] = self._few.get(account, 0) + units
            else:
                code = codes[place]
                self._count += not code
                codes[place] = later[code]

    def __repr__(self) -> str:
        return f"Amounts({dict(self)})"

    def _make_room(self, place: int) -> None:
        """Make room for all accounts that there are, and for some more."""
        codes = self._coded.codes
        if place >= len(codes):
            room = max(place + 1, len(self._names)) + len(codes) // 8
            codes.frombytes(bytes((room - len(codes)) * codes.itemsize))

    def _code(self, units: int) -> int:
        if code := self._code_of.get(units, 0):
            return code
        codes, values = self._coded
        code = len(values)
        if code >= 1 << 8 * codes.itemsize:
            self._coded = _Coded(array(_WIDER[codes.typecode], codes), values)
        values.append(units)
        self._code_of[units] = code
        return code

    def _forget_unused(self) -> None:
        """Drop the values that no account has, and number the others anew."""
        codes, values = self._coded
        used, new = np.unique(np.array(codes), return_inverse=True)
        lead = int(used.size == 0 or used[0] != 0)  # 0 stays the code of no amount
        kept = [0, *(values[code] for code in used.tolist() if code)]
        wide = array("B" if len(kept) < _MANY_VALUES else "I")
        wide.frombytes((new + lead).astype(wide.typecode).tobytes())
        self._coded, self._many = _Coded(wide, kept), max(_MANY_VALUES, 2 * len(kept))
        self._code_of = {value: code for code, value in enumerate(kept) if code}


class Admissions(Mapping[tuple[str, str], int]):
    """What each job was admitted with, by job and account."""

    __slots__ = ("_by_job", "_names")

    def __init__(self, names: ClientNames) -> None:
        self._names, self._by_job = names, dict[str, Amounts]()

    def __len__(self) -> int:
        return sum(map(len, self._by_job.values()))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((job, account) for job, held in self._by_job.items() for account in held)

    def __contains__(self, place: object) -> bool:
        return isinstance(place, tuple) and len(place) == 2 and self.get(place) is not None

    def __getitem__(self, place: tuple[str, str]) -> int:
        if (found := self.get(place)) is None:
            raise KeyError(place)
        return found

    @overload
    def get(self, place: tuple[str, str], /) -> int | None: ...

    @overload
    def get(self, place: tuple[str, str], /, default: int | T) -> int | T: ...

    def get(self, place: tuple[str, str], /, default: int | T | None = None) -> int | T | None:
        """Return what a job was admitted with, of an account."""
        held = self._by_job.get(place[0])
        return default if held is None else held.get(place[1], default)

    def __setitem__(self, place: tuple[str, str], units: int) -> None:
        job, account = place
        if (held := self._by_job.get(job)) is None:
            held = self._by_job[job] = Amounts(self._names)
        held[account] = units

    def put_each(
        self, job: str, accounts: Sequence[str], places: Sequence[int], units: int
    ) -> None:
        """Note with what many accounts were admitted that a job had not been admitted with."""
        if (held := self._by_job.get(job)) is None:
            held = self._by_job[job] = Amounts(self._names)
        held.add_to_each(accounts, places, units)

    def accounts(self) -> set[str]:
        """Return the accounts that any job was admitted with."""
        return {account for held in self._by_job.values() for account in held}


def distinct(accounts: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the place of each account in a list, of one that stands there twice the first."""
    seen = Amounts(ClientNames())
    for place, account in enumerate(accounts):
        if account not in seen:
            seen[account] = 0
            yield place, account


def _key(name: str) -> bytes | None:
    """Return the bytes of a client's account name; None of any other name."""
    if len(name) != _HEX:
        return None
    try:
        key = bytes.fromhex(name)
    except ValueError:
        return None
    return key if key.hex() == name else None


def _put(slots: "array[int]", key: bytes, place: int) -> None:
    slot, mask = hash(key), len(slots) - 1
    while slots[slot & mask]:
        slot += 1
    slots[slot & mask] = place + 1
