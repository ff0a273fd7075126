"""From a ledger's entry back to the mechanism that it names."""

from collections.abc import Mapping
from typing import get_args

from colonnade.privacy.disclosure import Disclosure
from colonnade.privacy.distributed import GaussianShare, MaskingMessage
from colonnade.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Mechanism,
    SignedSelection,
)
from colonnade.privacy.membership import Covered, MembershipNoise
from colonnade.privacy.person_claim import PersonClaim
from colonnade.privacy.ring_noise import SealedCiphertext, SealedOpening, SealedReply

Known = (
    DiscreteGaussian
    | DiscreteLaplace
    | SignedSelection
    | SealedCiphertext
    | SealedReply
    | SealedOpening
    | MembershipNoise
    | Covered
    | GaussianShare
    | MaskingMessage
    | Disclosure
    | PersonClaim
)
MECHANISMS: Mapping[str, type[Known]] = {kind.name: kind for kind in get_args(Known)}


def mechanism_from_record(record: Mapping[str, int | str]) -> Mechanism:
    """Rebuild the mechanism that a ledger entry names; `ValueError` if there is none such."""
    fields = {key: value for key, value in record.items() if key != "mechanism"}
    kind = MECHANISMS.get(str(record.get("mechanism")))
    if kind is None or not all(type(value) in (int, str) for value in fields.values()):
        raise ValueError("the entry names no known mechanism")
    try:
        return kind(**fields)  # type: ignore[arg-type]  # each checks which of them are integers
    except TypeError:
        raise ValueError("the entry does not fit its mechanism") from None
