"""A party's policy: what it agrees to, written by its own people. Absence means no.

Privacy: the ledger's cap holds whatever this file says. The policy narrows what a coordinator may
ask for at all: which jobs, over which columns, at which price.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from colonnade.core.config import Section, load_settings
from colonnade.core.errors import BadInput, PolicyRefused
from colonnade.methods.job import KINDS, Job
from colonnade.pki.identity import COORDINATOR, Identity
from colonnade.privacy.accounting import delta_for, rho_from_units, rho_of, units_down

ANY = "*"
_MAX_EPSILON = 1e4

_KEYS = (
    "coordinator",
    "kinds",
    "features",
    "label",
    "max_rho",
    "max_epsilon",
    "delta",
    "max_rounds",
    "until",
)

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
"""


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

    def objection(self, job: Job, party: str, today: dt.date) -> str | None:
        """Return why the job does not fit, or None."""
        member = job.member(party)
        if self.until is not None and today > self.until:
            return f"the allowance ended on {self.until}"
        if job.kind not in self.kinds:
            return f"jobs of kind {job.kind} are not allowed"
        if ANY not in self.features and (
            hidden := [name for name in member.features if name not in self.features]
        ):
            return f"feature {hidden[0]!r} may not take part"
        if member.holds_label and not self.label:
            return "the label may not be used"
        if job.rounds > self.max_rounds:
            return f"{job.rounds} rounds are more than the {self.max_rounds} allowed"
        if (units := job.max_units(party)) > self.max_units:
            return (
                f"the job may cost rho {rho_from_units(units):.6g}, more than the "
                f"{rho_from_units(self.max_units):.6g} allowed for one job"
            )
        return None


@dataclass(frozen=True, slots=True)
class Policy:
    """All allowances of a party."""

    allowances: tuple[Allowance, ...]

    def for_coordinator(self, coordinator: Identity) -> tuple[Allowance, ...]:
        """Return what a coordinator may ask for; refuse one that may ask for nothing."""
        found = tuple(each for each in self.allowances if each.coordinator == coordinator)
        if not found:
            raise PolicyRefused(f"the policy allows {coordinator.uri} nothing")
        return found

    def approve(self, job: Job, party: str, *, coordinator: Identity, today: dt.date) -> None:
        """Refuse a job that fits no allowance, with the reason."""
        reasons = []
        for allowance in self.for_coordinator(coordinator):
            reason = allowance.objection(job, party, today)
            if reason is None:
                return
            reasons.append(reason)
        raise PolicyRefused("; ".join(dict.fromkeys(reasons)))

    def offered(self, coordinator: Identity, names: Sequence[str]) -> tuple[list[str], bool]:
        """Return the features that a coordinator may ask for, and whether the label too."""
        allowed = self.for_coordinator(coordinator)
        features = [
            name
            for name in names
            if any(ANY in each.features or name in each.features for each in allowed)
        ]
        return features, any(each.label for each in allowed)


def load_policy(path: Path) -> Policy:
    """Read a policy; a key that is not known refuses the file."""
    settings = load_settings(path)
    settings.refuse_unknown(("allow",))
    return Policy(tuple(_allowance(section) for section in settings.sections("allow")))


def _allowance(section: Section) -> Allowance:
    section.refuse_unknown(_KEYS)
    coordinator = Identity.from_uri(section.text("coordinator"))
    if coordinator.role != COORDINATOR:
        raise BadInput(f"{section.where}: {coordinator.uri} is no coordinator")
    kinds = section.texts("kinds")
    for kind in kinds:
        if kind not in KINDS:
            raise BadInput(f"{section.where}: unknown kind {kind!r}; known: {', '.join(KINDS)}")
    return Allowance(
        coordinator=coordinator,
        kinds=kinds,
        features=section.texts("features"),
        label=section.flag("label"),
        max_units=_units(section),
        max_rounds=section.integer("max_rounds", low=1),
        until=section.date("until"),
    )


def _units(section: Section) -> int:
    if ("max_rho" in section.values) == ("max_epsilon" in section.values):
        raise BadInput(f"{section.where}: give max_rho, or max_epsilon with delta")
    if "max_rho" in section.values:
        if "delta" in section.values:
            raise BadInput(f"{section.where}: delta belongs to max_epsilon, not to max_rho")
        return units_down(Fraction(section.number("max_rho")))
    try:
        delta = delta_for(section.number("delta"))
    except ValueError as error:
        raise BadInput(f"{section.where}: {error}") from None
    epsilon = section.number("max_epsilon")
    if epsilon > _MAX_EPSILON:
        raise BadInput(f"{section.where}: max_epsilon above {_MAX_EPSILON:g} promises nothing")
    return units_down(Fraction(rho_of(epsilon, delta)))
