"""The policy that a running party uses, and how another takes its place."""

import datetime as dt
from collections.abc import Callable

from colonnade.core.errors import BadInput
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.state import LedgerState
from colonnade.methods.job import Job
from colonnade.party.data.dataset import Dataset
from colonnade.party.policy import Allowance, Policy
from colonnade.pki.identity import Identity


class PolicyInUse:
    """One policy at a time; the ledger notes each when it comes into use."""

    def __init__(
        self,
        policy: Policy,
        dataset: Dataset | None,
        ledger: Ledger,
        *,
        coordinator: Identity,
        today: Callable[[], dt.date],
    ) -> None:
        self._dataset, self._ledger, self._coordinator = dataset, ledger, coordinator
        self._today = today
        self._staged: Policy | None = None
        self._check(policy)
        self._use(policy)

    def stage(self, policy: Policy) -> None:
        """Have another policy taken up before the next message; refuse one that cannot be used."""
        self._check(policy)
        self._staged = policy

    def take(self) -> bool:
        """Take up the policy that is staged; return whether there was one."""
        policy, self._staged = self._staged, None
        if policy is None:
            return False
        self._use(policy)
        return True

    def approve(self, job: Job) -> Allowance:
        """Return what allows a job over columns, or refuse it with the reason."""
        party, today = self._ledger.opened.party, self._today()
        return self.now.approve(job, party, coordinator=self._coordinator, today=today)

    def _use(self, policy: Policy) -> None:
        """Put a policy in use, and note it."""
        self.written = policy  # as in its file
        self.now = policy  # with raw columns' names spread over what they become
        if self._dataset is not None:
            encodings = self._dataset.coarse.header.encodings
            self.now = policy.with_columns({each.name: each.names for each in encodings})
        if policy.text:
            with self._ledger.lock:
                self._ledger.decisions.note_policy(policy.text, approvals=policy.needed)

    def _check(self, policy: Policy) -> None:
        """Refuse a policy that asks too many people, or that allows the coordinator nothing."""
        policy.for_coordinator(self._coordinator)  # one that may ask nothing is not talked to
        check_approvers(policy.needed, self._ledger.state)


def check_approvers(needed: int, state: LedgerState) -> None:
    """Refuse a policy that asks for the agreement of more people than may decide."""
    if needed > (approvers := len(state.docket.approvers)):
        raise BadInput(
            f"the policy asks for the agreement of {needed}, and the ledger names "
            f"{approvers} approvers; see 'colonnade ledger approvers'"
        )
