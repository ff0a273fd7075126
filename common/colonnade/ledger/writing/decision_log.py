"""What the ledger notes of jobs before anything is set aside: seen, refused, decided by people."""

import hashlib
from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.core.errors import BadInput, JobClosed
from colonnade.ledger.decisions import approvers_statement, signed_approvers
from colonnade.ledger.drafts import Draft, deciding, proposing
from colonnade.ledger.job_entries import ApproversSet, Decided, Declined, PolicyNoted, Proposed
from colonnade.ledger.rules.fold import check_decision
from colonnade.ledger.writing.journal import Journal


class DecisionLog:
    """The entries of one ledger that are about decisions on jobs."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def propose(self, entry: Proposed, spec: bytes) -> None:
        """Note a job and what the policy says of it; the same again changes nothing."""
        self._journal.check_alive()
        known = self._journal.state.docket.proposals.get(entry.job)
        if known is not None and known.entry == entry:
            return
        keep = entry.spec_bytes > 0 and (known is None or not known.seq)
        self._journal.storage.require_space(len(spec))
        self._journal.append([proposing(entry, spec if keep else None)])

    def decline(self, entry: Declined) -> None:
        """Note that the party itself refused a job; the same again changes nothing."""
        self._journal.check_alive()
        if self._journal.state.docket.declined.get(entry.job) != entry:
            self._journal.append([Draft(entry)])

    def decide(self, entry: Decided) -> bool:
        """Append an approver's decision; return False if it is there already."""
        self._journal.check_alive()
        if entry in self._journal.state.docket.decisions.get(entry.job, ()):
            return False
        try:
            check_decision(self._journal.state, entry)
        except (ValueError, JobClosed) as error:
            raise BadInput(f"the decision does not count: {error}") from None
        self._journal.append([deciding(entry)], releases=True)
        return True

    def note_policy(self, text: bytes, *, approvals: int = 0) -> int:
        """Note the policy that comes into use and return its version.

        ``approvals`` is the most people that one of its rules asks.
        """
        self._journal.check_alive()
        docket, digest = self._journal.state.docket, hashlib.sha256(text).hexdigest()
        if docket.policy is None or docket.policy.sha256 != digest:
            version = len(docket.policies) + 1
            noted = PolicyNoted(version, digest, len(text), approvals)
            self._journal.append([Draft(noted, body=text)])
        return len(docket.policies)

    def specification(self, job: str) -> bytes:
        """Return the bytes of a job that was proposed."""
        self._journal.check_alive()
        found = self._journal.state.docket.proposals.get(job)
        if found is None or not found.seq or (spec := self._journal.kept(found.seq, job)) is None:
            raise BadInput("the ledger keeps no specification of that job")
        return spec

    def set_approvers(
        self,
        keys: Sequence[bytes],
        *,
        reason: str,
        approvers: Sequence[Ed25519PrivateKey] = (),
    ) -> None:
        """Append who decides from now on; as many sign as decisions needed until now."""
        self._journal.check_alive()
        entry = ApproversSet([key.hex() for key in keys], reason, "", [])
        seq, ledger_id = self._journal.state.next_seq, self._journal.opened.ledger_id
        statement = approvers_statement(ledger_id, seq, entry)
        entry = signed_approvers(entry, statement, sign=self._journal.sign, approvers=approvers)
        try:
            self._journal.append([Draft(entry)], releases=True)
        except ValueError as error:
            raise BadInput(f"the approvers were not changed: {error}") from None
