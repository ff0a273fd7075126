"""Rules of a policy that let people decide: how many of them, and which rule a job falls under."""

from collections.abc import Sequence
from typing import Annotated, Literal, Protocol, TypeVar

from msgspec import Meta

from colonnade.core.errors import PolicyRefused
from colonnade.ledger.decisions import ASK, MAX_APPROVERS

Approve = Literal["auto", "ask"]
Approvals = Annotated[int, Meta(ge=1, le=MAX_APPROVERS)]


class AskingRule(Protocol):
    """An allowance of a policy."""

    @property
    def needed(self) -> int:
        """How many people have to agree."""


R = TypeVar("R", bound=AskingRule)


def people_needed(approve: str, approvals: int) -> int:
    """Return how many people have to agree: nobody unless the rule asks."""
    return approvals if approve == ASK else 0


def most_lenient(objections: Sequence[tuple[R, str | None]], nothing: str) -> R:
    """Return the rule without an objection that needs the fewest people, or refuse."""
    fitting = [rule for rule, reason in objections if reason is None]
    if not fitting:
        told = "; ".join(dict.fromkeys(reason for _, reason in objections if reason))
        raise PolicyRefused(told or nothing)
    return min(fitting, key=lambda rule: rule.needed)
