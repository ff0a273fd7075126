"""What parties offer: checked when it comes, because everyone who plans a job reads it."""

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.methods.base import MAX_ALIGNMENT_NAME, MAX_CLIENTS, MAX_FEATURES, MAX_POPULATION
from colonnade.methods.bounds import bounds_at
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.v1 import federation_pb2, job_pb2
from colonnade.wire.encodings import encoding_from_proto
from colonnade.wire.jobspec import feature_from_proto, fill_from_proto


def check_offer(party: str, offer: federation_pb2.Offer) -> None:
    """Refuse an offer that could not be shown or planned with."""
    if not offer.dataset:
        _check_without_table(party, offer)
        return
    most = {job_pb2.UNIT_RECORD: MAX_POPULATION, job_pb2.UNIT_CLIENT: MAX_CLIENTS}
    if not 1 <= offer.population <= most.get(offer.unit, 0) or len(offer.features) > MAX_FEATURES:
        raise BadInput(f"party {party} offers too many or no rows or clients, or too many features")
    check_budget(party, offer)
    if offer.bounds_units > offer.spent_units:
        raise BadInput(f"party {party} says that bounds cost more than all that it has spent")
    if not offer.dataset.isalnum() or len(offer.dataset) > 64:
        raise BadInput(f"party {party} names no version of its table")
    if len(offer.alignment) > MAX_ALIGNMENT_NAME or not offer.alignment.isascii():
        raise BadInput(f"party {party} names no alignment and no roster")
    try:
        if not all(each.low <= fill_from_proto(each) <= each.high for each in offer.features):
            raise ValueError("a feature's fill lies outside its bounds")
        bounds_to_use(offer)
        for encoding in offer.encodings:
            encoding_from_proto(encoding)
    except (ValueError, ArithmeticError) as error:
        raise BadInput(f"party {party} offers columns that cannot be used: {error}") from None


def _check_without_table(party: str, offer: federation_pb2.Offer) -> None:
    """Refuse an offer of columns or people without a table: such a party can be aligned alone."""
    told = (offer.population, len(offer.features), offer.HasField("label"), len(offer.tight))
    if any(told) or offer.alignment or offer.bounds_units:
        raise BadInput(f"party {party} names no version of its table")
    check_budget(party, offer)


def check_budget(party: str, told: federation_pb2.Offer | federation_pb2.Standing) -> None:
    """Refuse a budget that no ledger has."""
    if not told.spent_units + told.reserved_units <= told.cap_units <= MAX_UNITS:
        raise BadInput(f"party {party} says that it has spent or set aside more than its cap")


def bounds_to_use(offer: federation_pb2.Offer) -> dict[str, Bounds]:
    """Return the offered columns, label last, each with the bounds that a job should use.

    They are those that the party's releases support, and the declared ones where there are none.
    """
    label = [offer.label] if offer.HasField("label") else []
    declared = dict(feature_from_proto(column) for column in (*offer.features, *label))
    if len(declared) != len(offer.features) + len(label):
        raise ValueError("two columns have one name")
    if not offer.tight:
        return declared
    places = zip(offer.tight[::2], offer.tight[1::2], strict=True)
    return {
        name: bounds_at(bounds, place)
        for (name, bounds), place in zip(declared.items(), places, strict=True)
    }
