"""Validate a round's answers: the kinds and sizes that a method in stages expects."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from colonnade.core.errors import BadInput
from colonnade.methods.base import PartLike

P = TypeVar("P", bound=PartLike)


class Staged(Protocol[P]):
    """A specification whose rounds are its stages."""

    @property
    def parts(self) -> Sequence[P]:
        """The parties' parts."""

    def stages(self) -> Sequence[object]:
        """Return the stages, one a round."""

    def round_kinds(self, round_: int, part: P) -> Collection[str]:
        """Return the kinds of release that a round expects of a party."""

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of one release's payload."""


def expected_part(spec: Staged[P], round_: int, party: str, bodies: Mapping[str, bytes]) -> P:
    """Return a party's part; `BadInput` unless ``bodies`` have the kinds and sizes of the round."""
    part = next((part for part in spec.parts if part.party == party), None)
    if part is None:
        raise BadInput(f"party {party!r} is not in the job")
    if round_ >= len(spec.stages()):
        raise BadInput("the job's rounds are over; nothing is expected")
    expected = spec.round_kinds(round_, part)
    if set(bodies) != set(expected):
        raise BadInput(
            f"round {round_} expects {', '.join(expected) or 'nothing'} of party "
            f"{party!r}, not {', '.join(sorted(bodies)) or 'nothing'}"
        )
    for kind, body in bodies.items():
        if len(body) != (size := spec.body_bytes(party, kind)):
            raise BadInput(f"the {kind} of party {party!r} has {len(body)} bytes instead of {size}")
    return part
