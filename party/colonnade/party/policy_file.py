"""A policy as a file: its template, its tables, and what is wrong in one said in one line."""

import datetime as dt
from fractions import Fraction
from pathlib import Path

from colonnade.core.config import Count, Positive, Strict, about, parse_toml, read_text
from colonnade.methods.registry import kinds, method_of
from colonnade.party.alignment.policy import TEMPLATE as ALIGN_TEMPLATE
from colonnade.party.alignment.policy import AlignTable
from colonnade.party.officer.asking import Approvals, Approve
from colonnade.party.policy import ANY, Allowance, Policy
from colonnade.party.prediction.policy import TEMPLATE as PREDICT_TEMPLATE
from colonnade.party.prediction.policy import PredictTable
from colonnade.party.sealed.cohort import TEMPLATE as COHORT_TEMPLATE
from colonnade.party.sealed.cohort import cohort_grant_of
from colonnade.party.sealed.policy import TEMPLATE as SEALED_TEMPLATE
from colonnade.party.sealed.policy import grant_of
from colonnade.pki.identity import COORDINATOR, Identity
from colonnade.privacy.accounting import delta_for, rho_of, units_down

_MAX_EPSILON = 1e4

TEMPLATE = """\
# What this organization agrees to. A job must fit one [[allow]] as a whole; anything else is
# refused, and so is every job if this file allows nothing.

[[allow]]
# Who may ask: the name in the coordinator's certificate.
coordinator = "spiffe://study/coordinator/hub"
# Which kinds of job; "admm" is for rows of clients (a schema with `client`), "evaluation" releases
# how good a model is, if this party holds the label.
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
TEMPLATE += SEALED_TEMPLATE + COHORT_TEMPLATE + ALIGN_TEMPLATE + PREDICT_TEMPLATE


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
    cohort: str = ""
    cohort_peers: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
    cohort_colluding: int | None = None

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
            cohort=cohort_grant_of(
                self.cohort, self.cohort_peers, self.cohort_colluding, kinds=self.kinds
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
    return policy_from(read_text(path), origin=path)


def policy_from(text: str, *, origin: Path) -> Policy:
    """Return what a policy's text says; ``origin`` is the file that it is, or was, in."""
    file = parse_toml(text, PolicyFile, origin=str(origin), folder=origin.resolve().parent)
    return Policy(
        tuple(table.allowance() for table in file.allow),
        tuple(table.allowance() for table in file.align),
        tuple(table.allowance() for table in file.predict),
        text.encode(),
    )
