"""Masks modulo 2**64 that cancel when all parts of a sum are added.

The party at the lower place of a pair adds the pair's stream, the other subtracts it. A part alone
is uniform over the integers modulo 2**64, and so is every sum that lacks one honest party's part,
as long as ChaCha20 (RFC 8439) is a pseudorandom function and a key masks one vector only.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray
from colonnade.masking.schedule import KeySchedule

Words: TypeAlias = NDArray[np.uint64]

WORD_BYTES = 8
MAX_WORDS = 2**32  # of one stream: far below the cipher's 256 GiB


def expand(key: bytes, count: int) -> Words:
    """Return the first ``count`` words of the stream of ``key``: little-endian, from block 0."""
    if not 0 <= count <= MAX_WORDS:
        raise ValueError("a stream has at most 2**32 words")
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(stream.update(bytes(8 * count)), "<u8").astype(np.uint64, copy=False)


def mask(schedule: KeySchedule, values: IntArray, *, absent: Sequence[int] = ()) -> Words:
    """Return ``values`` under the masks shared with every peer except the ``absent`` ones.

    Privacy: a schedule masks one vector. Store the result before it leaves and answer a repeat
    from there: two vectors under one schedule subtract to their difference.
    """
    masked = values.astype(np.uint64)  # modulo 2**64: a negative value wraps
    for other in range(len(schedule.run.peers)):
        if other == schedule.place or other in absent:
            continue
        stream = expand(schedule.mask_key(other), masked.size)
        if schedule.place < other:
            masked += stream
        else:
            masked -= stream
    return masked


def total(parts: Sequence[Words]) -> IntArray:
    """Return the sum modulo 2**64 of all parts, as signed integers: their masks cancel in it."""
    added = np.zeros(parts[0].size, np.uint64)
    for part in parts:
        added += part
    return added.view(np.int64)


def fits(values: IntArray, n_parties: int) -> bool:
    """Return whether the sum of ``n_parties`` such vectors cannot wrap: all below 2**62 / K."""
    bound = 2**62 // n_parties
    return bool(((values < bound) & (values > -bound)).all())


def words_to_bytes(words: Words) -> bytes:
    """Return the wire form: eight bytes a word, little-endian."""
    return words.astype("<u8", copy=False).tobytes()


def words_from_bytes(raw: bytes) -> Words:
    """Return the words in ``raw``."""
    if len(raw) % 8:
        raise ValueError("a masked vector has eight bytes a value")
    return np.frombuffer(raw, "<u8").astype(np.uint64, copy=False)
