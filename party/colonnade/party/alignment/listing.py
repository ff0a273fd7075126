"""Whom a party lists in an extension: no two runs from the same rows differ by a few people.

Rows stay where they are, so the coordinator counts, exactly and not covered by dummies, how many
people of each earlier pattern of presence have which pattern now. Of two runs that list a party's
people but for one, the difference is that person's presence at the other parties. So a run lists
whom the last one listed, ended or not; people who have come since, or have left, count only if they
are as many as the policy says, and otherwise wait, or stay listed.
"""

import logging
from collections.abc import Sequence

logger = logging.getLogger(__name__)


def listed(now: Sequence[bytes], last: Sequence[bytes], min_new: int) -> tuple[bytes, ...]:
    """Return whom an extension lists, of a party that has ``now`` and listed ``last`` before.

    Privacy: the list equals ``last``, or differs by at least ``min_new`` people who came, or left,
    or both. That few wait is not told: a refusal would say that there is somebody new.

    Examples
    --------
    >>> listed([b"a", b"b", b"x"], [b"a", b"b", b"c"], 2)
    (b'a', b'b', b'c')
    >>> listed([b"a", b"x", b"y"], [b"a", b"b", b"c"], 2)
    (b'a', b'x', b'y')
    """
    before, there = {*last}, {*now}
    gone = [each for each in last if each not in there]
    if few_came := 0 < len(there - before) < min_new:
        now = [each for each in now if each in before]
    if few_left := 0 < len(gone) < min_new:
        now = [*now, *gone]
    if few_came or few_left:
        logger.warning("alignment_changes_wait fewest=%d", min_new)
    return tuple(now)
