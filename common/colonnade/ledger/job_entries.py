"""The kinds of ledger entry about jobs: proposals, decisions, and jobs that follow others."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ApproversSet:
    """Who decides from here on; signed by the ledger's key and by those who decided until now.

    As many of them sign as any decision ever needed.
    """

    type: ClassVar[str] = "approvers"
    keys: list[str]
    reason: str
    signature: str
    approver_signatures: list[str]


@dataclass(frozen=True, slots=True)
class PolicyNoted:
    """A policy came into use; its text is kept with the entry."""

    type: ClassVar[str] = "policy"
    version: int
    sha256: str
    text_bytes: int
    approvals: int  # the most people that one of its rules asks


@dataclass(frozen=True, slots=True)
class Proposed:
    """A specification was seen, and what the policy says of it; its bytes are kept with the entry.

    The job's name is their SHA-256. Of a job that the policy refuses they may not be kept.
    """

    type: ClassVar[str] = "proposed"
    job: str
    coordinator: str  # who proposed it
    requested_by: str
    purpose: str
    name: str
    kind: str
    units: int  # the most that it can cost an account
    approve: str  # "auto", "ask" or "none": whether people decide, or nobody may
    approvals: int  # how many of them have to agree
    policy: int  # version
    spec_bytes: int  # 0 if they are not kept


@dataclass(frozen=True, slots=True)
class Declined:
    """The party refused a job by itself: by its policy, budget or table."""

    type: ClassVar[str] = "declined"
    job: str
    code: str
    reason: str  # as sent to the coordinator


@dataclass(frozen=True, slots=True)
class Decided:
    """An approver decided on a job that was proposed."""

    type: ClassVar[str] = "decided"
    job: str
    verdict: str  # "approve", "hold" or "refuse"
    reason: str
    number: int  # of this approver's decisions on this job, from 1
    approver: str  # public key
    signature: str


@dataclass(frozen=True, slots=True)
class Settled:
    """A job ended; a part of what it had set aside stays so, for a job that follows it.

    The rest is free again, and the job is never charged again.
    """

    type: ClassVar[str] = "settled"
    job: str
    units: int  # of the default account


@dataclass(frozen=True, slots=True)
class AdmittedAfter:
    """A job was admitted with what one before it had kept; it counts where that one counted."""

    type: ClassVar[str] = "admitted-after"
    job: str
    before: str
    units: int  # of the default account
