"""Whom a party lists in an extension: no two runs from the same rows differ by a few people.

Rows stay where they are, so the coordinator counts, exactly and not covered by dummies, how many
people of each earlier pattern of presence have which pattern now. Of two runs that list a party's
people but for one, the difference is that person's presence at the other parties. So a run lists
whom the last one listed, ended or not; people who have come since, or have left, count only if they
are as many as the policy says, beside every earlier list, and otherwise wait, or stay listed.
"""

import logging
from collections.abc import Sequence

logger = logging.getLogger(__name__)


def listed(
    now: Sequence[bytes], earlier: Sequence[Sequence[bytes]], min_new: int
) -> tuple[bytes, ...]:
    """Return whom an extension lists, of a party that has ``now``.

    Privacy: the list equals each of ``earlier``, those of the alignment and of its earlier
    extensions in their order, or differs from it by at least ``min_new`` people who came, or left,
    or both. Comparing with the last one only would not do: five come, then four of them leave.
    That few wait is not told: a refusal would say that there is somebody new.

    Examples
    --------
    >>> listed([b"a", b"b", b"x"], [[b"a", b"b", b"c"]], 2)
    (b'a', b'b', b'c')
    >>> listed([b"a", b"x", b"y"], [[b"a", b"b", b"c"]], 2)
    (b'a', b'x', b'y')
    >>> listed([b"a", b"x"], [[b"a"], [b"a", b"x", b"y", b"z"]], 2)
    (b'a', b'x', b'y', b'z')
    """
    wanted = _without_few(now, earlier[-1], min_new)
    if any(_without_few(wanted, each, min_new) != wanted for each in earlier):
        wanted = tuple(earlier[-1])
    if {*wanted} != {*now}:
        logger.warning("alignment_changes_wait fewest=%d", min_new)
    return wanted


def _without_few(now: Sequence[bytes], last: Sequence[bytes], min_new: int) -> tuple[bytes, ...]:
    """Return ``now``, where few came without those, and where few left with these."""
    before, there = {*last}, {*now}
    gone = [each for each in last if each not in there]
    if 0 < len(there - before) < min_new:
        now = [each for each in now if each in before]
    if 0 < len(gone) < min_new:
        now = [*now, *gone]
    return tuple(now)
