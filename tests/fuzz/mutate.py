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


def mutations(pool: Sequence[bytes], draw: np.random.Generator, count: int) -> Iterator[bytes]:
    """Yield changed examples; the first of all are the examples themselves."""
    for _ in range(count):
        body = bytearray(pool[int(draw.integers(len(pool)))])
        for _ in range(int(draw.integers(0, 5))):
            _change(body, pool, draw)
        yield bytes(body[:8192])


def _change(body: bytearray, pool: Sequence[bytes], draw: np.random.Generator) -> None:
    at, to = sorted(int(draw.integers(len(body) + 1)) for _ in range(2))
    match int(draw.integers(7)):
        case 0 if body:
            body[at % len(body)] ^= 1 << int(draw.integers(8))
        case 1:
            body[at : at + 1] = draw.bytes(1)
        case 2:
            del body[at : min(to, at + 32)]
        case 3:
            body[at:at] = body[at:to]
        case 4:
            body[at:at] = _ODD[int(draw.integers(len(_ODD)))]
        case 5:
            other = pool[int(draw.integers(len(pool)))]
            body[at:] = other[min(at, len(other)) :]
        case _:
            body[at : min(to, at + 8)] = draw.bytes(min(to - at, 8))
