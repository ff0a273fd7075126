"""Lists of points as bytes, and which of them nobody honest sends.

X25519 of a point of low order is 0 whatever the scalar is, so a peer who sends one asks nothing but
to make an exchange fail, or to mark a list. Results of X25519 are reduced modulo p; other encodings
are refused too. Points of the twist are not: both groups are strong, scalars are fresh for each run
and never used again, so a chosen point teaches nothing lasting (Bernstein 2006).
"""

import numpy as np
from numpy.typing import NDArray

from colonnade.core.errors import BadMessage
from colonnade.methods.alignment.refusals import HostilePoints

Points = NDArray[np.uint8]  # (n_points, 32)

POINT_BYTES = 32
_P = 2**255 - 19
# u-coordinates of order 1, 2, 4 and 8 on the curve and on its twist, reduced modulo p.
LOW_ORDER = (
    0,
    1,
    _P - 1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
_LOW = np.array(
    [np.frombuffer(u.to_bytes(POINT_BYTES, "little"), "<u8") for u in LOW_ORDER], np.uint64
)
_TOP = np.uint64(2**63 - 1)  # of a point's highest word, if it is reduced
_LEAST_TOO_LARGE = np.uint64(_P & (2**64 - 1))


def points_from_bytes(raw: bytes) -> Points:
    """Return the points in ``raw``, as rows."""
    if len(raw) % POINT_BYTES:
        raise BadMessage("a list of points has 32 bytes for each")
    return np.frombuffer(raw, np.uint8).reshape(-1, POINT_BYTES)


def check_points(points: Points) -> None:
    """Refuse points of low order and encodings that are not reduced, before any work on them."""
    words = np.ascontiguousarray(points).view("<u8").reshape(-1, 4)
    suspect = words[:, 3] >= _TOP
    for first in _LOW[:, 0]:
        suspect |= words[:, 0] == first
    words = words[suspect]  # hardly ever any: the rest is compared for these alone
    low = (words[:, None, :] == _LOW[None, :, :]).all(axis=2).any(axis=1)
    full = (words[:, 1:3] == 2**64 - 1).all(axis=1) & (words[:, 3] == _TOP)
    too_large = (words[:, 3] > _TOP) | (full & (words[:, 0] >= _LEAST_TOO_LARGE))
    if bad := int((low | too_large).sum()):
        raise HostilePoints(
            f"{bad} of {len(points)} points have low order or are not reduced; an honest party "
            "sends none such, so nothing was multiplied"
        )
