"""Errors that a person or a peer may see.

One class a cause, each with a stable ``code`` for machines and an ``exit_code`` for the shell.
Messages name ids, counts and limits, never data. ``EXIT_CODES`` is the list that help shows. A
message is for people at this site and may name their files; only that of a class that says so
(``public``) is sent to a peer, which else gets the code and one fixed sentence.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

EXIT_OK = 0
EXIT_CHECK_FAILED = 1
EXIT_USAGE = 2
EXIT_BAD_INPUT = 3
EXIT_REFUSED = 4
EXIT_LEDGER = 5
EXIT_BUSY = 6
EXIT_UNREACHABLE = 7
EXIT_JOB = 8
EXIT_CERTIFICATE = 9
EXIT_INTERNAL = 70
EXIT_SIGNAL = 128

EXIT_CODES: Mapping[int, str] = MappingProxyType(
    {
        EXIT_OK: "done",
        EXIT_CHECK_FAILED: "a check found a problem",
        EXIT_USAGE: "wrong usage, or a command that this installation leaves out",
        EXIT_BAD_INPUT: "bad input: an argument cannot be used, or a file cannot be read or "
        "written (a full disk too)",
        EXIT_REFUSED: "refused: budget, policy, identity, an absent party, or a request that "
        "conflicts or was made before",
        EXIT_LEDGER: "the ledger, or the coordinator's database, is damaged, was rolled back, or "
        "could not be written",
        EXIT_BUSY: "in use by another process",
        EXIT_UNREACHABLE: "the coordinator cannot be reached",
        EXIT_JOB: "the job failed or was cancelled",
        EXIT_CERTIFICATE: "the own certificate has expired, or is not valid yet: renew it, or set "
        "the clock",
        EXIT_INTERNAL: "internal error",
        EXIT_SIGNAL + 2: "stopped by SIGINT; by another signal 128 plus its number",
        EXIT_SIGNAL + 13: "the reader of standard output went away before all was written",
    }
)
"""What each exit code means: the one list, printed by help and compared with the documentation."""


class ColonnadeError(Exception):
    """Describe in one line what is wrong, where, and how to fix it."""

    code: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = EXIT_INTERNAL
    public: ClassVar[bool] = False  # a class has to say that its messages name nothing local
    sentence: ClassVar[str] = "this has to be fixed at the party; its own log says more"

    @property
    def for_peers(self) -> str:
        """What a peer may read."""
        return str(self) if self.public else self.sentence


class BadInput(ColonnadeError):
    """A file or an argument the user gave cannot be used."""

    code = "bad_input"
    exit_code = EXIT_BAD_INPUT


class BadMessage(BadInput):
    """What a peer sent cannot be used."""

    code = "bad_message"
    public = True


class BudgetExceeded(ColonnadeError):
    """The release would cost more than is left under the cap."""

    code = "budget_exceeded"
    exit_code = EXIT_REFUSED
    public = True


class RequestConflict(ColonnadeError):
    """A key was used before with another request."""

    code = "request_conflict"
    exit_code = EXIT_REFUSED
    public = True


class ReleasePurged(ColonnadeError):
    """The stored release was purged; it is never drawn again."""

    code = "release_purged"
    exit_code = EXIT_REFUSED
    public = True


class ReleaseAbandoned(ColonnadeError):
    """The release was paid for and could not be made; it is never tried again."""

    code = "release_abandoned"
    exit_code = EXIT_REFUSED


class JobClosed(ColonnadeError):
    """The job was closed at this ledger and is never answered again."""

    code = "job_closed"
    exit_code = EXIT_REFUSED
    public = True


class AwaitingApproval(ColonnadeError):
    """People at the party have yet to decide on the job; nothing is set aside or charged."""

    code = "awaiting_approval"
    exit_code = EXIT_REFUSED
    public = True


class LowDisk(ColonnadeError):
    """Too little free space to store an answer, noticed before anything was charged."""

    code = "low_disk"
    exit_code = EXIT_REFUSED
    sentence = "the party has too little free disk; try again later (nothing was charged)"


class LedgerBusy(ColonnadeError):
    """Another process holds the ledger."""

    code = "ledger_busy"
    exit_code = EXIT_BUSY


class NotBound(ColonnadeError):
    """The ledger was not used with this table, or the table with this ledger."""

    code = "not_bound"
    exit_code = EXIT_REFUSED


class DatasetChanged(ColonnadeError):
    """The table on disk is not the one that the process opened."""

    code = "dataset_changed"
    exit_code = EXIT_REFUSED


class DatasetBusy(ColonnadeError):
    """Another process reads, or writes, the party's table."""

    code = "dataset_busy"
    exit_code = EXIT_BUSY


class LedgerDamaged(ColonnadeError):
    """The ledger's files fail a check, so the ledger does not open."""

    code = "ledger_damaged"
    exit_code = EXIT_LEDGER


class LedgerRolledBack(ColonnadeError):
    """A mirror or a receipt knows of releases that the ledger does not."""

    code = "ledger_rolled_back"
    exit_code = EXIT_LEDGER


class LedgerBehind(ColonnadeError):
    """A coordinator has seen a later, or a diverged, state of the ledger before."""

    code = "ledger_behind"
    exit_code = EXIT_LEDGER


class LedgerFailed(ColonnadeError):
    """A write to the ledger failed; the process must stop and the ledger be opened again."""

    code = "ledger_failed"
    exit_code = EXIT_LEDGER


class VerificationFailed(ColonnadeError):
    """An export does not verify: it was changed, cut short, or is of another ledger."""

    code = "verification_failed"
    exit_code = EXIT_CHECK_FAILED


# After any of these nothing more may be released by this process.
FATAL = (LedgerDamaged, LedgerFailed, LedgerRolledBack)


class NotPrivate(ColonnadeError):
    """Noise that is not exact and secret met a real ledger."""

    code = "not_private"
    exit_code = EXIT_REFUSED
    public = True


class BadIdentity(ColonnadeError):
    """A certificate or a request for one does not say, validly, who its holder is."""

    code = "bad_identity"
    exit_code = EXIT_REFUSED


class CertificateExpired(BadIdentity):
    """The member's own certificate is out of its time; a renewed one, or a set clock, fixes it."""

    code = "certificate_expired"
    exit_code = EXIT_CERTIFICATE


class PolicyRefused(ColonnadeError):
    """A party's policy, or a coordinator's rules, do not allow what was asked."""

    code = "policy_refused"
    exit_code = EXIT_REFUSED
    public = True


class NotEnrolled(ColonnadeError):
    """The party has not registered its ledger's key, or registered another."""

    code = "not_enrolled"
    exit_code = EXIT_REFUSED
    public = True


class PartyAbsent(ColonnadeError):
    """A party that nobody left out on purpose is away, or offers nothing to this job."""

    code = "party_absent"
    exit_code = EXIT_REFUSED


class DuplicateJob(ColonnadeError):
    """The same question was asked before; asking again would spend again."""

    code = "duplicate_job"
    exit_code = EXIT_REFUSED


class StaleEpoch(ColonnadeError):
    """The session was replaced by a newer one."""

    code = "stale_epoch"
    exit_code = EXIT_REFUSED
    public = True


class UnknownJob(ColonnadeError):
    """No job has this name."""

    code = "unknown_job"
    exit_code = EXIT_BAD_INPUT
    public = True


class Unreachable(ColonnadeError):
    """The coordinator cannot be reached, or does not answer in time."""

    code = "unreachable"
    exit_code = EXIT_UNREACHABLE


class StoreFailed(ColonnadeError):
    """The coordinator's database failed; the process must stop and resume from it."""

    code = "store_failed"
    exit_code = EXIT_LEDGER


class StoreBusy(StoreFailed):
    """Another coordinator holds the database."""

    code = "store_busy"
    exit_code = EXIT_BUSY


class StoreConflict(StoreFailed):
    """Another coordinator process wrote first, or owns the job by now; memory is loaded again."""

    code = "store_conflict"


class JobEnded(ColonnadeError):
    """The job failed or was cancelled."""

    code = "job_ended"
    exit_code = EXIT_JOB
    public = True
