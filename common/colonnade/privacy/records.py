"""From a ledger's entry back to the mechanism that it names."""

from collections.abc import Mapping

from colonnade.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Mechanism,
    SignedSelection,
)
from colonnade.privacy.membership import Covered, MembershipNoise

_KINDS = (DiscreteGaussian, DiscreteLaplace, SignedSelection, MembershipNoise, Covered)
MECHANISMS: Mapping[str, type[Mechanism]] = {kind.name: kind for kind in _KINDS}


def mechanism_from_record(record: Mapping[str, int | str]) -> Mechanism:
    """Rebuild the mechanism that a ledger entry names; `ValueError` if there is none such."""
    numbers = {key: value for key, value in record.items() if key != "mechanism"}
    kind = MECHANISMS.get(str(record.get("mechanism")))
    if kind is None or not all(type(value) is int for value in numbers.values()):
        raise ValueError("the entry names no known mechanism")
    try:
        return kind(**numbers)
    except TypeError:
        raise ValueError("the entry does not fit its mechanism") from None
