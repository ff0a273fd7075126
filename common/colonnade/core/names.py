"""Compact sequences of names: a text object takes some fifty bytes beside its letters."""

from array import array
from collections.abc import Iterable, Sequence
from typing import overload

_WIDTH = 16  # bytes of a hexadecimal name


class PackedNames(Sequence[str]):
    """Names one after the other in one UTF-8 text: eight bytes each beside their letters."""

    __slots__ = ("_ends", "_hash", "_text")

    def __init__(self, names: Iterable[str]) -> None:
        text, ends = bytearray(), array("Q", [0])
        for name in names:
            text += name.encode()
            ends.append(len(text))
        self._text, self._ends = bytes(text), ends
        self._hash = hash((self._text, self._ends.tobytes()))

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        at = range(len(self))[place]
        return self._text[self._ends[at] : self._ends[at + 1]].decode()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PackedNames):
            return NotImplemented
        return (self._text, self._ends) == (other._text, other._ends)

    def __hash__(self) -> int:
        return self._hash


class HexNames(Sequence[str]):
    """Names of 32 hexadecimal digits: sixteen bytes each."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Iterable[bytes]) -> None:
        held = bytearray()
        for key in keys:
            held += key
        self._keys = bytes(held)
        if len(self._keys) % _WIDTH:
            raise ValueError("a name has sixteen bytes")

    def __len__(self) -> int:
        return len(self._keys) // _WIDTH

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        at = range(len(self))[place]
        return self._keys[at * _WIDTH : (at + 1) * _WIDTH].hex()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HexNames):
            return NotImplemented
        return self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)
