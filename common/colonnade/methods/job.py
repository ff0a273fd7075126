"""A job as both sides see it: who brings which columns, within which public bounds, and a method.

Privacy: bounds are public numbers. Values are clipped to them at the party, whatever they are, so
a job's author cannot raise the sensitivity by choosing them.
"""

import hashlib
from dataclasses import dataclass

from colonnade.core.fixedpoint import Bounds
from colonnade.methods.base import (
    MAX_FEATURES,
    MAX_PARTIES,
    MAX_POPULATION,
    MAX_RELEASE_BYTES,
    MAX_ROUNDS,
    MAX_TASK_ENTRIES,
    Member,
    MethodSpec,
    Unit,
)
from colonnade.methods.holdout import MAX_HOLDOUT
from colonnade.methods.problem import Labels
from colonnade.methods.registry import method_of
from colonnade.privacy.accounting import MAX_UNITS, delta_for

MAX_PURPOSE = 200
NO_LABEL = ("", Bounds(0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Job:
    """Everything about a job that is fixed before it starts."""

    name: str
    salt: bytes
    delta: float
    party_timeout_s: int
    members: tuple[Member, ...]
    label: str  # empty if the job ends in no model
    label_bounds: Bounds
    method: MethodSpec
    purpose: str = ""  # what the answer is for
    requested_by: str = ""  # URI of the operator who asks
    holdout: int = 0  # of a thousand rows, held out of the fit: `methods.holdout`
    evaluation_units: int = 0  # set aside by the evaluator for the evaluation that follows

    def __post_init__(self) -> None:
        if len(self.salt) != 16:
            raise ValueError("the salt must have 16 bytes")
        if not 1 <= self.party_timeout_s <= 10**7:
            raise ValueError("the parties' timeout must lie between 1 and 10000000 seconds")
        if not self.name or len(self.name) > 200 or not self.name.isprintable():
            raise ValueError("a job's name has 1 to 200 printable characters")
        for text in (self.purpose, self.requested_by):
            if len(text) > MAX_PURPOSE or not text.isprintable() or text != text.strip():
                raise ValueError(
                    f"a purpose, and who asks, have up to {MAX_PURPOSE} printable characters"
                )
        if not 1 <= len(self.members) <= MAX_PARTIES or not 1 <= self.population <= MAX_POPULATION:
            raise ValueError("the job has too many or no parties, rows or clients")
        delta_for(self.delta, self.population)  # one that protects nobody is refused
        if sum(len(member.features) for member in self.members) > MAX_FEATURES:
            raise ValueError("the job has too many features")
        for member, part in zip(self.members, self.method.parts, strict=True):
            if (member.party, member.features) != (part.party, part.features):
                raise ValueError("members and the method's parts differ")
            if member.holds_label != part.holds_label:
                raise ValueError("members and the method's parts differ about the label")
        if self.unit is Unit.RECORD and any(member.clients for member in self.members):
            raise ValueError("only a job over clients has clients")
        if not 0 <= self.holdout <= MAX_HOLDOUT:
            raise ValueError(f"a job keeps 0 to {MAX_HOLDOUT} of a thousand rows out of its fit")
        method = method_of(self.kind)
        if self.holdout and not (self.unit is Unit.RECORD and method.model and method.fits):
            raise ValueError("only a job that fits a model over columns keeps rows out")
        if not 0 <= self.evaluation_units <= MAX_UNITS or (
            self.evaluation_units and not self.holdout
        ):
            raise ValueError("an evaluation has a price, and people who were kept out of the fit")
        self._check_columns()
        method_of(self.kind).check(self.method, self.members)
        if not 1 <= self.rounds <= MAX_ROUNDS:
            raise ValueError(f"a job has 1 to {MAX_ROUNDS} rounds")
        for member in self.members:
            self._check_sizes(member)

    def _check_columns(self) -> None:
        """Refuse columns where there is no model, and rows that are not in one order."""
        if self.unit is Unit.RECORD and len({member.alignment for member in self.members}) > 1:
            raise ValueError("the parties' rows are in different orders: align them first")
        model = method_of(self.kind).model
        used = any(member.features or member.holds_label for member in self.members)
        if bool(self.label) != model or (used and not model):
            raise ValueError("a job has a label, and columns, if and only if it ends in a model")

    def _check_sizes(self, member: Member) -> None:
        """Refuse what no ledger could pay or no message carry, before anything is asked."""
        if self.max_units(member.party) > MAX_UNITS:
            raise ValueError("the job costs more than any ledger can hold")
        if self.method.task_entries(member.party) > MAX_TASK_ENTRIES:
            raise ValueError("the sketch or a party's features are too large for a message")
        for kind, count in self.method.max_releases(member.party).items():
            if count and self.method.body_bytes(member.party, kind) > MAX_RELEASE_BYTES:
                raise ValueError(f"a {kind} would have more than {MAX_RELEASE_BYTES} bytes")

    @property
    def unit(self) -> Unit:
        """The unit of privacy."""
        return method_of(self.kind).unit

    @property
    def population(self) -> int:
        """How many units of privacy there are: records, which every party has, or clients."""
        return self.method.population

    @property
    def kind(self) -> str:
        """The method's name."""
        return self.method.kind

    @property
    def rounds(self) -> int:
        """Rounds after the first."""
        return self.method.rounds

    def member(self, party: str) -> Member:
        """Return the place of ``party``; `ValueError` if it has none."""
        for member in self.members:
            if member.party == party:
                return member
        raise ValueError("the party is not in the job")

    def max_units(self, party: str) -> int:
        """Return the most that the job, with its evaluation, can ever cost a record or client."""
        return self.method.max_units(party) + self.units_kept(party)

    def units_kept(self, party: str) -> int:
        """Return what ``party`` keeps set aside, when the job has finished, for its evaluation."""
        return self.evaluation_units if party == self.evaluator else 0

    @property
    def evaluator(self) -> str:
        """The first party that holds the label: it is sent the scores of an evaluation."""
        return next(iter(self.label_parties()), "")

    def label_parties(self) -> tuple[str, ...]:
        """Return the parties whose releases depend on the label."""
        return tuple(member.party for member in self.members if member.holds_label)

    @property
    def labels_shared(self) -> bool:
        """Whether every party holds the label."""
        return self.method.labels is Labels.SHARED


def job_id(spec: bytes) -> str:
    """Return the name of the job that these bytes specify."""
    return hashlib.sha256(spec).hexdigest()
