"""A job as a data-protection officer reads it: who asks, what for, what leaves, what it costs."""

from dataclasses import dataclass

from colonnade.core.text import listed
from colonnade.ledger.decisions import Standing
from colonnade.privacy.accounting import format_share, format_units
from colonnade.privacy.membership import format_run
from colonnade.report.views.glossary import kind_words

_NOISY = "each with exact noise; no row, no column and no name"
_LEAVES = {
    "prediction": "masked scores of people, WITHOUT noise: the receiver learns them exactly",
    "alignment": "blinded identifiers of all people in your list, without noise",
    "sealed": "ciphertexts of rows, which a key hides, and numbers with exact noise",
}


_BECAME = {  # of a job of before, by its standing
    "waiting": "is waiting",
    "held": "is held",
    "approved": "is approved",
    "refused": "was refused",
    "declined": "was declined",
    "withdrawn": "was withdrawn",
    "accepted": "was accepted",
    "running": "is running",
    "ended": "has ended",
}


@dataclass(frozen=True, slots=True)
class Leaving:
    """One kind of message that would leave."""

    kind: str
    messages: int
    bytes: int  # of all of them

    @property
    def words(self) -> tuple[str, str]:
        """What it is called, and what it tells."""
        return kind_words(self.kind)


@dataclass(frozen=True, slots=True)
class CapAt:
    """A cap that applies: what is used of it now, and what would be, in units."""

    what: str
    cap: int
    used: int
    after: int

    @property
    def allows(self) -> bool:
        """Whether the job fits."""
        return self.after <= self.cap


@dataclass(frozen=True, slots=True)
class Similar:
    """A job of before that has to do with this one."""

    job: str
    name: str
    units: int
    how: str
    standing: str

    @property
    def became(self) -> str:
        """What became of it, as the end of a sentence."""
        return _BECAME[self.standing]


@dataclass(frozen=True, slots=True)
class Case:
    """One job, as somebody reads it who has to decide."""

    job: str
    name: str
    coordinator: str
    requested_by: str
    purpose: str
    kind: str
    method: str
    since: int  # Unix seconds
    party: str
    peers: tuple[str, ...]
    columns: tuple[str, ...]
    label: str  # empty if this party does not use it
    people: int
    over_clients: bool
    leaving: tuple[Leaving, ...]
    units: int
    delta: float
    caps: tuple[CapAt, ...]  # the table's first
    promise: str
    similar: tuple[Similar, ...]
    standing: str
    agreed: int
    needed: int
    reason: str

    @property
    def bytes(self) -> int:
        """The most payload that would leave."""
        return sum(each.bytes for each in self.leaving)

    @property
    def can_be_decided(self) -> bool:
        """Whether a decision would still change anything."""
        return self.waits or self.standing in ("approved", "accepted", "running")

    @property
    def became(self) -> str:
        """What became of it, as the end of a sentence."""
        return _BECAME[self.standing]

    @property
    def has_price(self) -> bool:
        """Whether differential privacy covers what leaves: predictions have no price."""
        return self.kind != "prediction"

    @property
    def uses(self) -> str:
        """What of this organization's takes part."""
        if not self.columns:
            return "your list of people"
        count = len(self.columns)
        return f"{count} of your columns" if count != 1 else "one of your columns"

    def amount(self, units: int, *, left: bool = False, of: str = "") -> str:
        """Return an amount for people, under the cap ``of`` something or the job's first.

        The price of an alignment reads as its own epsilon (`privacy/membership.py`); a cap that
        counts alignments among other jobs adds up their rho.
        """
        if self.kind != "alignment":
            return format_units(units, self.delta, left=left)
        if of in ("", self.caps[0].what):
            return format_run(units, left=left)
        return format_units(units, left=left)

    @property
    def what_leaves(self) -> str:
        """What the messages are, by the kind of promise that they rest on."""
        return _LEAVES.get(self.kind, _NOISY)

    @property
    def fits(self) -> bool:
        """Whether every cap allows the job."""
        return all(cap.allows for cap in self.caps)

    @property
    def waits(self) -> bool:
        """Whether somebody has to decide."""
        return self.standing in (Standing.WAITING.value, Standing.HELD.value)


def sentences(case: Case) -> list[str]:
    """Return a case in sentences."""
    table = case.caps[0]
    who = case.requested_by or "Somebody whom the job does not name"
    purpose = f"for the purpose {case.purpose!r}" if case.purpose else "and states no purpose"
    using = f"{case.uses} and the label {case.label!r}" if case.label else case.uses
    others = f" together with {listed(list(case.peers))}" if case.peers else ""
    lines = [
        f"{who} asks for {case.name!r}, {purpose}, through {case.coordinator}.",
        f"It would use {using}{others}: {case.method}.",
    ]
    if case.columns:
        lines.append(f"Columns: {', '.join(case.columns)}.")
    messages = sum(each.messages for each in case.leaving)
    kinds = ", ".join(f"{each.words[0]} {each.bytes} bytes" for each in case.leaving)
    whose = " for each client" if case.over_clients else ""
    lines.append(
        f"At most {case.bytes} bytes would leave{whose} in {messages} messages ({kinds}): "
        f"{case.what_leaves}."
    )
    if case.has_price:
        share = format_share(case.units, table.cap)
        lines.append(
            f"It costs at most {case.amount(case.units)}, {share} of the cap of {table.what}."
        )
    else:
        lines.append("It has no price and no cap of privacy loss limits it.")
    for cap in case.caps if case.has_price else ():
        left = case.amount(max(0, cap.cap - cap.used), left=True, of=cap.what)
        after = case.amount(max(0, cap.cap - cap.after), left=True, of=cap.what)
        verdict = f"afterwards {after}" if cap.allows else "which is not enough: it cannot start"
        lines.append(f"Left under the cap of {cap.what}: {left}; {verdict}.")
    lines.append(case.promise)
    for each in case.similar:
        paid = case.amount(each.units) if each.units else "nothing"
        lines.append(
            f"Asked before: {each.name!r} ({each.job[:12]}), {each.how}; it {each.became} and "
            f"has cost {paid}."
        )
    if not case.similar:
        lines.append("Nothing similar was asked before.")
    return lines
