"""Who learns what from a prediction, in the words of policies, plans, terminals and reports."""

from collections.abc import Sequence

PROMISE = (
    "No differential privacy: the receiver learns exact scores. Nobody else learns any, if the "
    "parties follow the protocol; the coordinator sees which row numbers are asked, and sealed "
    "bytes."
)
COLLUSION = (
    "a party's partial score shows to the receiver unless two parties besides the receiver are "
    "honest"
)
DECODING = (
    "coefficients are public and a score is exact to about 54 bits, so whatever masks hide, one "
    "score can tell every column that has few possible values (yes or no, codes, whole years)"
)


def exposure(n_parties: int) -> str:
    """Return what the number of parties means for a partial score."""
    if n_parties == 2:
        return (
            "With two parties the receiver subtracts its own part: it learns the other's partial "
            "score of every row, exactly."
        )
    return f"With {n_parties} parties {COLLUSION}."


def learned(receiver: str, n_parties: int, middle: Sequence[str]) -> list[tuple[str, str]]:
    """Return who learns what."""
    told = [
        (receiver, f"the score of every asked row, exactly; {DECODING}"),
        ("the coordinator", "which row numbers are asked, by which model, for whom; no score"),
        ("the other parties", "the same as the coordinator; no score"),
        ("colluding parties", exposure(n_parties)),
    ]
    if middle:
        who = ", ".join(middle)
        what = f"that {who} does not score: its features count as the middle of their bounds"
        told.append(("everybody", f"{what}, for these rows and this model for good"))
    return told
