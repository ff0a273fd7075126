"""A party's policy: what it agrees to, written by its own people. Absence means no.

Privacy: the ledger's cap holds whatever this file says. The policy narrows what a coordinator may
ask for at all: which jobs, over which columns, at which price.
"""

import datetime as dt
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from colonnade.core.config import Count, Positive, Strict, about, parse_toml, read_text
from colonnade.core.errors import PolicyRefused
from colonnade.ledger.decisions import ASK, AUTO
from colonnade.methods.alignment.spec import AlignmentSpec
from colonnade.methods.job import Job
from colonnade.methods.prediction.spec import PredictionSpec
from colonnade.methods.registry import kinds, method_of
from colonnade.party.alignment.policy import TEMPLATE as ALIGN_TEMPLATE
from colonnade.party.alignment.policy import AlignAllowance, AlignTable, Approvals, Approve
from colonnade.party.prediction.policy import TEMPLATE as PREDICT_TEMPLATE
from colonnade.party.prediction.policy import PredictAllowance, PredictTable
from colonnade.party.sealed.policy import TEMPLATE as SEALED_TEMPLATE
from colonnade.party.sealed.policy import SealedGrant, grant_of, objection_to
from colonnade.pki.identity import COORDINATOR, Identity
from colonnade.privacy.accounting import delta_for, format_units, rho_of, units_down

ANY = "*"
_MAX_EPSILON = 1e4
_NO_PURPOSE = "the job says no purpose, and the policy lists those that are allowed"

TEMPLATE = """\
# What this organization agrees to. A job must fit one [[allow]] as a whole; anything else is
# refused, and so is every job if this file allows nothing.

[[allow]]
# Who may ask: the name in the coordinator's certificate.
coordinator = "spiffe://study/coordinator/hub"
# Which kinds of job; "admm" is for rows of clients (a schema with `client`).
kinds = ["frank-wolfe", "moments"]
# Which columns may take part; ["*"] for all of the table.
features = ["*"]
# Whether the label may be used.
label = true
# The most that one job may cost: max_rho, or max_epsilon with delta.
max_epsilon = 1.0
delta = 1e-6
# The most rounds of one job.
max_rounds = 500
# Last day on which a job is accepted.
# until = 2030-12-31
# "ask": such a job waits until an approver of the ledger decides (colonnade party jobs); "auto": it
# is accepted at once.
# approve = "ask"
# How many approvers have to agree.
# approvals = 1
# For which purposes, and asked by which operators (the names in their certificates).
# purposes = ["readmission study"]
# operators = ["spiffe://study/operator/analyst"]
"""
TEMPLATE += SEALED_TEMPLATE + ALIGN_TEMPLATE + PREDICT_TEMPLATE


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one coordinator may ask for."""

    coordinator: Identity
    kinds: tuple[str, ...]
    features: tuple[str, ...]
    label: bool
    max_units: int
    max_rounds: int
    until: dt.date | None = None
    sealed: SealedGrant | None = None  # whom it trusts to follow the protocol, in sealed jobs
    approve: str = AUTO
    approvals: int = 1
    purposes: tuple[str, ...] = (ANY,)
    operators: tuple[str, ...] = (ANY,)

    @property
    def needed(self) -> int:
        """How many people have to agree."""
        return self.approvals if self.approve == ASK else 0

    def objection(self, job: Job, party: str, today: dt.date) -> str | None:
        """Return why the job does not fit, or None."""
        member = job.member(party)
        if self.until is not None and today > self.until:
            return f"the allowance ended on {self.until}"
        if job.kind not in self.kinds:
            return f"jobs of kind {job.kind} are not allowed"
        if ANY not in self.purposes and job.purpose not in self.purposes:
            return f"the purpose {job.purpose!r} is not allowed" if job.purpose else _NO_PURPOSE
        if ANY not in self.operators and job.requested_by not in self.operators:
            return f"{job.requested_by or 'an operator who is not named'} may not ask"
        if ANY not in self.features and (
            hidden := [name for name in member.features if name not in self.features]
        ):
            return f"feature {hidden[0]!r} may not take part"
        if member.holds_label and not self.label:
            return "the label may not be used"
        if (reason := objection_to(self.sealed, job.method, party)) is not None:
            return reason
        if job.rounds > self.max_rounds:
            return f"{job.rounds} rounds are more than the {self.max_rounds} allowed"
        if (units := job.max_units(party)) > self.max_units:
            return (
                f"the job may cost {format_units(units, job.delta)}, more than the "
                f"{format_units(self.max_units, job.delta, left=True)} allowed for one job"
            )
        return None


@dataclass(frozen=True, slots=True)
class Policy:
    """All allowances of a party."""

    allowances: tuple[Allowance, ...]
    alignments: tuple[AlignAllowance, ...] = ()
    predictions: tuple[PredictAllowance, ...] = ()
    text: bytes = b""  # of the file

    @property
    def needed(self) -> int:
        """The most people who have to agree to any job."""
        needed = [each.needed for each in self.allowances]
        needed += [each.needed for each in self.alignments]
        return max((*needed, *(each.needed for each in self.predictions)), default=0)

    def with_columns(self, columns: Mapping[str, Sequence[str]]) -> "Policy":
        """Return the policy in which a raw column's name stands for all that it becomes."""

        def spread(each: Allowance) -> Allowance:
            names = (columns.get(named, (named,)) for named in each.features)
            return replace(each, features=tuple(itertools.chain.from_iterable(names)))

        return replace(self, allowances=tuple(map(spread, self.allowances)))

    def for_coordinator(self, coordinator: Identity) -> tuple[Allowance, ...]:
        """Return what a coordinator may ask for; refuse one that may ask for nothing."""
        found = tuple(each for each in self.allowances if each.coordinator == coordinator)
        others = self._alignments_for(coordinator) or self._predictions_for(coordinator)
        if not found and not others:
            raise PolicyRefused(f"the policy allows {coordinator.uri} nothing")
        return found

    def _alignments_for(self, coordinator: Identity) -> tuple[AlignAllowance, ...]:
        return tuple(each for each in self.alignments if each.coordinator == coordinator)

    def _predictions_for(self, coordinator: Identity) -> tuple[PredictAllowance, ...]:
        return tuple(each for each in self.predictions if each.coordinator == coordinator)

    def align_people(self, coordinator: Identity) -> int:
        """Return the most people that a coordinator may have listed in an alignment."""
        return max((each.max_people for each in self._alignments_for(coordinator)), default=0)

    def approve_alignment(
        self, spec: AlignmentSpec, party: str, *, coordinator: Identity, today: dt.date
    ) -> int:
        """Return how many people have to agree to an alignment.

        One that fits no ``[[align]]`` is refused, with the reason.
        """
        rules = self._alignments_for(coordinator)
        reasons = [(rule, rule.objection(spec, party, today)) for rule in rules]
        return _fewest(reasons, "the policy has no [[align]] for this coordinator").needed

    def approve_prediction(
        self, spec: PredictionSpec, job: str, *, party: str, coordinator: Identity, today: dt.date
    ) -> PredictAllowance:
        """Return the grant for a model of ``job``, or refuse a request that fits none."""
        rules = self._predictions_for(coordinator)
        reasons = [(rule, rule.objection(spec, job, party, today)) for rule in rules]
        return _fewest(reasons, "the policy has no [[predict]] for this coordinator")

    def approve(self, job: Job, party: str, *, coordinator: Identity, today: dt.date) -> Allowance:
        """Return the allowance that a job fits and that needs the fewest people.

        One that fits none is refused, with the reason.
        """
        rules = self.for_coordinator(coordinator)
        reasons = [(rule, rule.objection(job, party, today)) for rule in rules]
        return _fewest(reasons, "the policy allows this coordinator no jobs over columns")

    def sealed_grant(self, coordinator: Identity) -> SealedGrant | None:
        """Return what a coordinator's sealed jobs are granted, if anything."""
        allowed = self.for_coordinator(coordinator)
        return next((each.sealed for each in allowed if each.sealed is not None), None)

    def offered(self, coordinator: Identity, names: Sequence[str]) -> tuple[list[str], bool]:
        """Return the features that a coordinator may ask for, and whether the label too."""
        allowed = self.for_coordinator(coordinator)
        features = [
            name
            for name in names
            if any(ANY in each.features or name in each.features for each in allowed)
        ]
        return features, any(each.label for each in allowed)


Rule = TypeVar("Rule", Allowance, AlignAllowance, PredictAllowance)


def _fewest(objections: Sequence[tuple[Rule, str | None]], nothing: str) -> Rule:
    """Return the rule without an objection that needs the fewest people."""
    fitting = [rule for rule, reason in objections if reason is None]
    if not fitting:
        told = "; ".join(dict.fromkeys(reason for _, reason in objections if reason))
        raise PolicyRefused(told or nothing)
    return min(fitting, key=lambda rule: rule.needed)


class _AllowTable(Strict, frozen=True):
    """An ``[[allow]]``."""

    coordinator: str
    kinds: tuple[str, ...]
    features: tuple[str, ...]
    max_rounds: Count
    label: bool = False
    max_rho: Positive | None = None
    max_epsilon: Positive | None = None
    delta: Positive | None = None
    until: dt.date | None = None
    approve: Approve = "auto"
    approvals: Approvals = 1
    purposes: tuple[str, ...] = (ANY,)
    operators: tuple[str, ...] = (ANY,)
    sealed: str = ""
    sealed_peers: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
    sealed_columns: Count | None = None
    hostile_epsilon: Positive | None = None

    def __post_init__(self) -> None:
        self.allowance()

    def allowance(self) -> Allowance:
        with about("coordinator"):
            coordinator = Identity.from_uri(self.coordinator)
            if coordinator.role != COORDINATOR:
                raise ValueError(f"{coordinator.uri} is no coordinator")
        # An alignment is no job over columns: [[align]] allows it.
        known = [each for each in kinds() if method_of(each).model]
        for kind in self.kinds:
            if kind not in known:
                raise ValueError(f"kinds: unknown kind {kind!r}; known kinds: {', '.join(known)}")
        return Allowance(
            coordinator=coordinator,
            kinds=self.kinds,
            features=self.features,
            label=self.label,
            max_units=self._max_units(),
            max_rounds=self.max_rounds,
            until=self.until,
            approve=self.approve,
            approvals=self.approvals,
            purposes=self.purposes,
            operators=self.operators,
            sealed=grant_of(
                self.sealed,
                self.sealed_peers,
                self.sealed_columns,
                hostile_epsilon=self.hostile_epsilon,
                kinds=self.kinds,
            ),
        )

    def _max_units(self) -> int:
        if self.max_rho is not None and self.max_epsilon is None:
            if self.delta is not None:
                raise ValueError("delta: belongs to max_epsilon, not to max_rho")
            return units_down(Fraction(self.max_rho))
        if self.max_rho is not None or self.max_epsilon is None:
            raise ValueError("give max_rho, or max_epsilon with delta")
        if self.delta is None:
            raise ValueError("delta: is missing")
        with about("delta"):
            delta = delta_for(self.delta)
        if self.max_epsilon > _MAX_EPSILON:
            raise ValueError(f"max_epsilon: above {_MAX_EPSILON:g} it promises nothing")
        return units_down(Fraction(rho_of(self.max_epsilon, delta)))


class PolicyFile(Strict, frozen=True):
    """A whole policy."""

    allow: tuple[_AllowTable, ...] = ()
    align: tuple[AlignTable, ...] = ()
    predict: tuple[PredictTable, ...] = ()


def load_policy(path: Path) -> Policy:
    """Read a policy; a key that is not known refuses the file."""
    text = read_text(path)
    file = parse_toml(text, PolicyFile, origin=str(path), folder=path.resolve().parent)
    return Policy(
        tuple(table.allowance() for table in file.allow),
        tuple(table.allowance() for table in file.align),
        tuple(table.allowance() for table in file.predict),
        text.encode(),
    )
