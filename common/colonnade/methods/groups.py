"""Columns of one category: how many of them one row can move."""

from collections import Counter
from collections.abc import Iterable, Sequence


def check_groups(features: Sequence[str], groups: Sequence[str]) -> None:
    """Refuse groups that are not one for each feature."""
    if groups and len(groups) != len(features):
        raise ValueError("a party's features need a group each, or none")


def check_same_groups(parts: Iterable[Sequence[str]], members: Iterable[Sequence[str]]) -> None:
    """Refuse groups of a method's parts that are not those of the job's members."""
    if list(parts) != list(members):
        raise ValueError("members and the method's parts differ about groups")


def moved_columns(features: Sequence[str], groups: Sequence[str]) -> int:
    """Return how many of a party's columns can move when one row is replaced.

    Privacy: at most one column of a group differs from its lower value in any row, so that a
    replaced row moves at most two of them: the one it leaves and the one it enters. That the
    columns of a group are so is made sure by ingest, and a party refuses a job whose groups are not
    those of its table.
    """
    sizes = Counter(group for group in groups if group)
    alone = len(features) - sum(sizes.values())
    return alone + sum(min(size, 2) for size in sizes.values())


def moved_or_absent(features: int, moved: int) -> int:
    """Return ``moved`` columns, or more if a person's coming or going moves sums by more.

    Privacy: sums of columns and of their squares over ``GRID`` are released, with a column of
    presence (``GRID`` or 0) among ``features``, all of them 0 in the row of somebody whom the party
    does not have. One present row replaced by another leaves presence and moves ``moved`` columns,
    each by at most ``(2 GRID)**2`` in square. A person who comes or goes moves every column by at
    most ``GRID`` and its squares by at most ``GRID``: ``2 GRID**2`` in square, half of what is
    counted for a moved column. So half as many columns, rounded up, cover that.
    """
    return max(moved, -(-features // 2))


def units_of(features: Sequence[str], groups: Sequence[str]) -> int:
    """Return how many features people see: a group is one, whatever its number of columns."""
    return sum(not group for group in groups or [""] * len(features)) + len(set(groups) - {""})
