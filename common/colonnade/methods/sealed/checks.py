"""What a sealed job's specification must satisfy: both sides check it before anything else."""

from typing import TYPE_CHECKING

from colonnade.methods.base import payload
from colonnade.methods.moments.checks import check_columns, check_numbers
from colonnade.methods.sealed.charges import check_key, check_reply
from colonnade.methods.sealed.kinds import OPENINGS, REPLIES, parsed
from colonnade.methods.sealed.packing import MAX_BODY_BYTES
from colonnade.methods.sealed.rounds import relayed_kinds

# Of all bodies of a round, as a task relays them or an answer holds them: a message's limit, less
# what is around them (`wire.fragments`).
MAX_ROUND_BYTES = 60 << 20
# Of a release that a ledger stores.
MAX_STORED_BYTES = 4 << 20

if TYPE_CHECKING:
    from colonnade.methods.base import Part
    from colonnade.methods.sealed.spec import SealedSpec


def check_spec(spec: "SealedSpec") -> None:
    """Raise `ValueError` unless the job can be run as it is written."""
    check_columns(spec)
    if len(spec.parts) < 2 or spec.buckets < 1:
        raise ValueError("a sealed job needs two or more parties, and buckets for rows")
    if sum(part.holds_label for part in spec.parts) != 1:
        raise ValueError("in a sealed job one party holds the label")
    if spec.keep < 0 or spec.label_lanes < 1 or spec.groups < 1:
        raise ValueError("a job keeps a number of features, and has lanes and groups")
    reaches = (spec.reach, spec.wide_reach, spec.label_reach, spec.bucket_reach)
    check_numbers(spec.radius, *reaches, penalty=spec.penalty, label=spec.label_weight)
    _check_shields(spec)
    _check_prices(spec)
    for part in spec.parts:
        _check_keys(spec, part)
        spec.max_units(part.party)  # a price too large or too small for its noise is refused here
        _check_sizes(spec, part)
        if max(payload(spec, part.party).values()) > MAX_BODY_BYTES:
            raise ValueError(
                f"a release of {part.party!r} would have more than {MAX_BODY_BYTES} bytes; "
                "use fewer features or more lanes"
            )


def _check_shields(spec: "SealedSpec") -> None:
    if not spec.shields:
        return
    if len(spec.shields) != len(spec.parts) or min(spec.shields) < 0:
        raise ValueError("every party has a price of its shield, or none")
    if any(spec.shields) and spec.wide():
        raise ValueError("rows that are shielded are not screened; keep all features")
    for part in (each for each in spec.parts if spec.shield(each) is not None):
        if 2 * min(spec.n_rows, spec.buckets) * spec.n_gram(part) > MAX_STORED_BYTES:
            raise ValueError("a shield of so many buckets and columns is too large; use fewer")


def _check_prices(spec: "SealedSpec") -> None:
    if len(spec.prices) != len(spec.parts) or spec.mean_units < 1:
        raise ValueError("every party needs prices, and means a price")
    for part, prices in zip(spec.parts, spec.prices, strict=True):
        if prices.gram < 1 or prices.cross < 1:
            raise ValueError("Gram matrices and products between parties need a price")
        if part in spec.wide() and prices.wide < 1:
            raise ValueError("the Gram matrix of all features needs a price")
        buys = part in spec.multipliers_of_label() or (
            part.holds_label and bool(spec.multipliers_of_label())
        )
        if buys and prices.label < 1:
            raise ValueError("products with the label need a price")


def _check_sizes(spec: "SealedSpec", part: "Part") -> None:
    """Refuse a task or an answer that is larger than a message may be, in pieces."""
    for round_, stage in enumerate(spec.stages()):
        sent = sum(spec.body_bytes(part.party, kind) for kind in spec.round_kinds(round_, part))
        got = sum(spec.body_bytes(*each) for each in relayed_kinds(spec, stage, part))
        if max(sent, got) > MAX_ROUND_BYTES:
            raise ValueError(
                f"a round would bring {part.party!r} or send {max(sent, got)} bytes, more than "
                f"{MAX_ROUND_BYTES}; use fewer buckets"
            )


def _check_keys(spec: "SealedSpec", part: "Part") -> None:
    """Refuse what a key or a mask could not hide; a key serves one party in one stage."""
    for base in OPENINGS:
        kinds = [kind for kind in spec.kinds(part) if parsed(kind)[0] == base]
        if kinds:
            products = [spec.product(kind, part) for kind in kinds]
            check_key(products, spec.sigma2(kinds[0], part))
    for kind in spec.kinds(part):
        if parsed(kind)[0] in REPLIES:
            check_reply(spec.product(kind, part), spec.sigma2(kind, part))
