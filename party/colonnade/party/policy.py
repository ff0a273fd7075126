"""A party's policy: what it agrees to, written by its own people. Absence means no.

Privacy: the ledger's cap holds whatever this file says. The policy narrows what a coordinator may
ask for at all: which jobs, over which columns, at which price.
"""

import datetime as dt
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from colonnade.core.errors import PolicyRefused
from colonnade.ledger.decisions import AUTO
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.methods.alignment.spec import AlignmentSpec
from colonnade.methods.job import Job
from colonnade.methods.prediction.spec import PredictionSpec
from colonnade.party.alignment.policy import AlignAllowance
from colonnade.party.officer.asking import most_lenient, people_needed
from colonnade.party.prediction.policy import PredictAllowance
from colonnade.party.sealed.cohort import CohortGrant, objection_to_cohort
from colonnade.party.sealed.policy import SealedGrant, objection_to
from colonnade.pki.identity import Identity
from colonnade.privacy.accounting import format_units

ANY = "*"
_NO_PURPOSE = "the job says no purpose, and the policy lists those that are allowed"


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
    cohort: CohortGrant | None = None  # the same, in secure sums over the hosts of a job
    approve: str = AUTO
    approvals: int = 1
    purposes: tuple[str, ...] = (ANY,)
    operators: tuple[str, ...] = (ANY,)

    @property
    def needed(self) -> int:
        """How many people have to agree."""
        return people_needed(self.approve, self.approvals)

    def pins(self, kind: str) -> Mapping[str, bytes]:
        """Return the ledger keys of peers that are trusted in jobs of ``kind``."""
        grant = self.cohort if kind == AdmmJobSpec.kind else self.sealed
        return {} if grant is None else grant.pins

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
        if (reason := objection_to_cohort(self.cohort, job.method, party)) is not None:
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

    def widest_alignment(self, coordinator: Identity) -> AlignAllowance | None:
        """Return the allowance of most people whom a coordinator may have listed."""
        found = self._alignments_for(coordinator)
        return max(found, key=lambda each: each.max_people, default=None)

    def approve_alignment(
        self, spec: AlignmentSpec, party: str, *, coordinator: Identity, today: dt.date
    ) -> int:
        """Return how many people have to agree to an alignment.

        One that fits no ``[[align]]`` is refused, with the reason.
        """
        rules = self._alignments_for(coordinator)
        reasons = [(rule, rule.objection(spec, party, today)) for rule in rules]
        return most_lenient(reasons, "the policy has no [[align]] for this coordinator").needed

    def approve_prediction(
        self, spec: PredictionSpec, job: str, *, party: str, coordinator: Identity, today: dt.date
    ) -> PredictAllowance:
        """Return the grant for a model of ``job``, or refuse a request that fits none."""
        rules = self._predictions_for(coordinator)
        reasons = [(rule, rule.objection(spec, job, party, today)) for rule in rules]
        return most_lenient(reasons, "the policy has no [[predict]] for this coordinator")

    def approve(self, job: Job, party: str, *, coordinator: Identity, today: dt.date) -> Allowance:
        """Return the allowance that a job fits and that needs the fewest people.

        One that fits none is refused, with the reason.
        """
        rules = self.for_coordinator(coordinator)
        reasons = [(rule, rule.objection(job, party, today)) for rule in rules]
        return most_lenient(reasons, "the policy allows this coordinator no jobs over columns")

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
