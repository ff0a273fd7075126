"""Between people and row numbers, at a party that was aligned: only it can tell who a row is."""

from pathlib import Path

from colonnade.core.errors import BadInput
from colonnade.party.alignment.store import AlignmentFolder, EndedAlignment, read_outcome

Names = tuple[tuple[str, ...], dict[int, tuple[str, ...]]]  # id columns, and the texts of a row


def outcome_of(data: Path, alignment: str) -> EndedAlignment | None:
    """Return the alignment that a table's rows follow; None for a roster's order."""
    try:
        return read_outcome(AlignmentFolder.beside(data).find(alignment)) if alignment else None
    except BadInput:
        return None


def extended_orders(data: Path, alignment: str) -> frozenset[str]:
    """Return the alignments that a table's one extends: their people have the same rows in it."""
    found, names = outcome_of(data, alignment), set[str]()
    while found is not None and found.spec.extends is not None:
        previous = found.spec.extends.previous.hex()
        names.add(previous)
        found = outcome_of(data, previous)
    return frozenset(names)


def names_of(data: Path, alignment: str) -> Names:
    """Return who the rows of a table are, as far as the party can tell, by normalised ids."""
    found = outcome_of(data, alignment)
    if found is None:
        return (), {}
    return found.columns, {row: _texts(person) for person, row in found.by_id.items()}


def _texts(person: bytes) -> tuple[str, ...]:
    """Return the texts of an id: each follows its length (`methods.alignment.normalise`)."""
    texts: list[str] = []
    while person:
        end = 4 + int.from_bytes(person[:4], "big")
        texts.append(person[4:end].decode())
        person = person[end:]
    return tuple(texts)
