"""Changes of examples: bits, bytes, numbers, pieces repeated, cut, swapped and spliced."""

from collections.abc import Iterator, Sequence

import numpy as np

_ODD = (
    b"\xff" * 8,
    b"\0" * 8,
    b"\x80",
    b"\x7f",
    b"\xff\xff\xff\xff\x0f",
    b"nan",
    b"-1",
    b"[" * 400,
)
_MOST = 4  # changes of one example


def mutations(pool: Sequence[bytes], draw: np.random.Generator, count: int) -> Iterator[bytes]:
    """Yield changed examples; the first of all are the examples themselves."""
    # Drawn all at once: one by one, numbers cost more than most parsers take.
    dice = draw.integers(0, 1 << 63, (count, 2 + 4 * _MOST), np.uint64).tolist()
    for which, changes, *numbers in dice:
        body = bytearray(pool[which % len(pool)])
        for first in range(0, 4 * (changes % (1 + _MOST)), 4):
            _change(body, pool, *numbers[first : first + 4])
        yield bytes(body[:8192])


def _change(
    body: bytearray, pool: Sequence[bytes], one: int, two: int, kind: int, value: int
) -> None:
    at, to = sorted((one % (len(body) + 1), two % (len(body) + 1)))
    match kind % 7:
        case 0 if body:
            body[at % len(body)] ^= 1 << value % 8
        case 1:
            body[at : at + 1] = bytes([value % 256])
        case 2:
            del body[at : min(to, at + 32)]
        case 3:
            body[at:at] = body[at:to]
        case 4:
            body[at:at] = _ODD[value % len(_ODD)]
        case 5:
            other = pool[value % len(pool)]
            body[at:] = other[min(at, len(other)) :]
        case _:
            body[at : min(to, at + 8)] = value.to_bytes(8, "little")[: min(to - at, 8)]
