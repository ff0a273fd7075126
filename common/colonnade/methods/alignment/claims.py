"""What each side learns from an alignment: said before it is approved, and in its report."""

from collections.abc import Sequence

from colonnade.methods.alignment.spec import Mode
from colonnade.privacy.membership import MembershipNoise

PROMISE = (
    "Job releases: each cap also covers whether a person is present at that party, given the "
    "number of rows. The alignment itself: the coordinator alone learns how many people have each "
    "pattern of presence (differentially private by dummies); the coordinator together with one "
    "party learns, for that party's list, who is where, exactly; modes inner and left tell the "
    "parties. All of it holds if the parties follow the protocol."
)
_TOLD = {
    Mode.UNION: "nothing of who else lists a person; the number of rows, with phantoms in it",
    Mode.LEFT: "which of its people the first party lists, exactly",
    Mode.INNER: "which of its people all parties list, exactly",
}


_EXTENDED_HUB = (
    "of an extension also, exactly, how many people of each earlier pattern have which pattern now"
)
_EXTENDED_PARTY = "of an extension also, exactly, which of its new people others had listed before"


def learned(
    modes: Sequence[Mode], noise: MembershipNoise | None = None, *, extends: bool = False
) -> tuple[tuple[str, str], ...]:
    """Return who learns what, as pairs; ``noise`` says how much the counts hide.

    An extension leaves rows where they are, so a new person with an old row is somebody whom
    another party had: its owner sees that, and the coordinator counts it.
    """
    amount = ""
    if noise is not None:
        amount = f" (epsilon {float(noise.epsilon):.4g}, delta {noise.delta:.3g} for each party)"
    told = "; ".join(
        f"{_TOLD[mode]} (mode {mode.value})" if len(modes) > 1 else _TOLD[mode] for mode in modes
    )
    counts = f"how many people have each pattern of presence, with dummies{amount}"
    if extends:
        counts, told = f"{counts}; {_EXTENDED_HUB}", f"{told}; {_EXTENDED_PARTY}"
    return (
        ("coordinator alone", counts),
        ("each party", told),
        ("coordinator with a party", "for that party's list, who is where, exactly"),
        ("readers of the report", "the overlap of parties, from counts with noise"),
    )
