"""Whom a party lets align its people with whom: ``[[align]]`` of its policy. Absence means no."""

import datetime as dt
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from colonnade.core.config import Count, Positive, Strict, about
from colonnade.ledger.decisions import AUTO
from colonnade.methods.alignment.normalise import PLAIN, Repeated, named_rule
from colonnade.methods.alignment.spec import MAX_ROWS, AlignmentSpec, Mode
from colonnade.party.officer.asking import Approvals, Approve, people_needed
from colonnade.pki.identity import COORDINATOR, Identity

ANY = "*"
_People = Annotated[int, Meta(ge=1, le=MAX_ROWS)]

TEMPLATE = """\

# Alignments: which coordinator may have this organization's people put in one order with whose.
# [[align]]
# coordinator = "spiffe://study/coordinator/hub"
# With whom, by the names in their certificates; ["*"] for any party of the federation.
# peers = ["laboratory", "insurer"]
# Who may get a row: "union" tells parties nothing of each other's people, "left" tells each which
# of its people the first party has, "inner" which of them all have.
# modes = ["union"]
# How ids are written, one rule for each column of [align] id: plain, fold-case, digits-only,
# number, no-trim, nfc, as-is, joined by commas. A specification has to say the same: whoever could
# choose the rule would learn, from what is refused, which ids are alike.
# ids = ["plain"]
# What happens if a person is listed twice: "refuse" the alignment, or take the "first" row.
# repeated = "refuse"
# The most people that this organization lists; a specification has to say the same.
# max_people = 100000
# The most that one run may cost the membership account.
# max_epsilon = 1.0
# max_delta = 1e-6
# The fewest new people that an extension lists; fewer wait for a later one, and fewer who have
# left stay listed. Without it no alignment may be extended: an extension tells parties which of
# their new people others had listed before.
# min_new = 100
# Last day on which an alignment is accepted.
# until = 2030-12-31
# Whether an approver decides, and how many have to agree, as for jobs.
# approve = "ask"
# approvals = 1
"""


@dataclass(frozen=True, slots=True)
class AlignAllowance:
    """Which alignments one coordinator may ask for."""

    coordinator: Identity
    peers: tuple[str, ...]
    modes: tuple[Mode, ...]
    max_people: int
    max_epsilon: float
    max_delta: float
    min_new: int | None
    ids: tuple[str, ...] | None = None  # None: plain, whatever the number of columns
    repeated: Repeated = Repeated.REFUSE
    until: dt.date | None = None
    approve: str = AUTO
    approvals: int = 1

    @property
    def needed(self) -> int:
        """How many people have to agree."""
        return people_needed(self.approve, self.approvals)

    def id_rules(self, n_columns: int) -> tuple[str, ...]:
        """Return the names of the rules by which ids of so many columns are written."""
        return self.ids or (PLAIN,) * n_columns

    def objection(self, spec: AlignmentSpec, party: str, today: dt.date) -> str | None:
        """Return why an alignment does not fit, or None."""
        if self.until is not None and today > self.until:
            return f"the allowance ended on {self.until}"
        strangers = [p.party for p in spec.parts if p.party not in (party, *self.peers)]
        if strangers and ANY not in self.peers:
            return f"people may not be aligned with those of {strangers[0]}"
        if spec.mode not in self.modes:
            return f"mode {spec.mode.value} is not allowed"
        written = self.id_rules(len(spec.ids.columns))
        if spec.ids != named_rule(written, self.repeated.value):
            return (
                f"ids are written as {' and '.join(written)} here, repeated ones "
                f"{self.repeated.value} ([[align]] ids, repeated)"
            )
        people = spec.parts[spec.place(party)].max_people
        # Not fewer either: whoever could choose the number would find out how long the list is.
        if people != self.max_people:
            return f"a specification lists up to {self.max_people} people of this party"
        if spec.noise.epsilon > self.max_epsilon or spec.noise.delta > self.max_delta:
            return (
                f"membership may cost epsilon {float(spec.noise.epsilon):.4g} and delta "
                f"{spec.noise.delta:.3g}, more than the {self.max_epsilon:.4g} and "
                f"{self.max_delta:.3g} allowed for one run"
            )
        if spec.extends is not None and self.min_new is None:
            return "alignments may not be extended (min_new)"
        if spec.extends is not None and spec.extends.min_new != self.min_new:  # as with people
            return f"an extension takes {self.min_new} new people or more"
        return None


class AlignTable(Strict, frozen=True):
    """An ``[[align]]``."""

    coordinator: str
    peers: tuple[str, ...]
    max_people: _People
    modes: tuple[str, ...] = (Mode.UNION.value,)
    max_epsilon: Positive = 1.0
    max_delta: Positive = 1e-6
    min_new: Count | None = None
    ids: tuple[str, ...] | None = None
    repeated: Literal["refuse", "first"] = "refuse"
    until: dt.date | None = None
    approve: Approve = "auto"
    approvals: Approvals = 1

    def __post_init__(self) -> None:
        self.allowance()

    def allowance(self) -> AlignAllowance:
        """Return what the table says."""
        with about("coordinator"):
            coordinator = Identity.from_uri(self.coordinator)
            if coordinator.role != COORDINATOR:
                raise ValueError(f"{coordinator.uri} is no coordinator")
        with about("ids"):
            if self.ids is not None:
                named_rule(self.ids, self.repeated)
        known = [mode.value for mode in Mode]
        for mode in self.modes:
            if mode not in known:
                raise ValueError(f"modes: unknown mode {mode!r}; known modes: {', '.join(known)}")
        return AlignAllowance(
            coordinator=coordinator,
            peers=self.peers,
            modes=tuple(map(Mode, self.modes)),
            max_people=self.max_people,
            max_epsilon=self.max_epsilon,
            max_delta=self.max_delta,
            min_new=self.min_new,
            ids=self.ids,
            repeated=Repeated(self.repeated),
            until=self.until,
            approve=self.approve,
            approvals=self.approvals,
        )
