"""The kinds of release of a sealed job, and the stages of its rounds."""

import enum

# The kinds of release. Bodies of a sealed table, and products with several peers, are numbered.
MEANS, WIDE, GRAM = "means", "wide", "gram"
LABEL, PRODUCTS, SCREEN = "label", "products", "screen"
SEAL, REPLY, OPEN = "seal", "reply", "open"
SHIELD = "shield"  # of the hostile account, and never sent
SEALED, REPLIES, OPENINGS = (LABEL, SEAL), (PRODUCTS, REPLY), (SCREEN, OPEN)


class SealedStage(enum.Enum):
    """What a round is for."""

    MEANS = "means"
    LABEL = "label"
    PRODUCTS = "products"
    SCREEN = "screen"
    SEAL = "seal"
    REPLY = "reply"
    OPEN = "open"


def numbered(base: str, place: int) -> str:
    """Return a kind of which a party has several: by body, or by the peer's place."""
    return f"{base}.{place}"


def parsed(kind: str) -> tuple[str, int]:
    """Return a kind's base and number; 0 for one without."""
    base, _, place = kind.partition(".")
    return base, int(place or 0)
