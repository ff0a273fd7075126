"""The ledger: a party's append-only account of everything it ever released.

Privacy: the promise that a party's total is at most its cap rests on these rules. A release is
charged, durably, before a row is read. A key is charged once and has one body, ever. Nothing is
refunded. The sum of charges and of what open jobs have set aside never exceeds the cap. A ledger
that cannot prove it is whole (chain, mirror, digests, prices) does not open; one that fails to
write stops for good. What is written together passes the same rules, one account at a time.
"""

import hashlib
import itertools
import threading
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.core.errors import BadInput
from colonnade.ledger.caps import signed_cap
from colonnade.ledger.drafts import (
    Draft,
    ReleaseRequest,
    abandoning,
    admission,
    admission_after,
    charge,
    closing,
    purging,
    settling,
    storing,
)
from colonnade.ledger.entries import Bound, CapSet, ReleaseKey
from colonnade.ledger.heads import Evidence, SignedHead
from colonnade.ledger.people.account import PeopleAccount
from colonnade.ledger.people.entries import Joined
from colonnade.ledger.receipts import Receipt
from colonnade.ledger.rules.amounts import distinct
from colonnade.ledger.rules.following import check_after
from colonnade.ledger.rules.releases import check_charge
from colonnade.ledger.rules.spending import check_admission, check_cap
from colonnade.ledger.state import REFUSALS, Head, LedgerState, Refusal, abandonment
from colonnade.ledger.storage.base import MAX_BODY_BYTES, Storage
from colonnade.ledger.writing.decision_log import DecisionLog
from colonnade.ledger.writing.journal import Journal
from colonnade.privacy.accounting import Budget
from colonnade.privacy.mechanisms import Mechanism

# A commit with so many charges surely fits the disk space that is asked for before one.
MAX_TOGETHER = 1024
_ADMISSION_BYTES = 512  # more than the line of an admission has for each account


@dataclass(frozen=True, slots=True)
class Released:
    """Bytes that may leave the party: charged, stored, and the same at every retry.

    ``receipt`` speaks of this release, or of the newest of those handed out with it.
    """

    key: ReleaseKey
    body: bytes
    receipt: Receipt


class Ledger:
    """One party's account, in one process; ``lock`` is held by whoever makes a release."""

    def __init__(
        self,
        storage: Storage,
        signer: Ed25519PrivateKey,
        clock: Callable[[], float],
        *,
        people: Callable[[Journal], PeopleAccount] | None = None,
    ) -> None:
        self._journal = Journal(storage, signer, clock)
        self._people = people(self._journal) if people else None
        self._state, self.opened = self._journal.state, self._journal.opened
        self.decisions, self.stop = DecisionLog(self._journal), self._journal.stop
        self.lock = threading.RLock()

    # -- reading ---------------------------------------------------------------------------------

    @property
    def head(self) -> Head:
        """The end of the chain."""
        return self._state.head

    @property
    def state(self) -> LedgerState:
        """Everything the entries say; not to be changed."""
        return self._state

    def lines(self) -> Iterator[str]:
        """Yield the entries' lines, as the chain covers them."""
        return (line for _, line, _ in self._journal.storage.rows())

    def budget(self, account: str = "") -> Budget:
        """Return cap and spending of ``account``."""
        return self._state.budget(account)

    def free(self, account: str = "") -> int:
        """Return what an account has neither spent nor set aside, in units."""
        return self._state.unreserved(account).remaining

    def stored(self, key: ReleaseKey) -> Released | None:
        """Return the release of ``key`` if it was stored and not purged."""
        self._journal.check_alive()
        return self.stored_many([key])[0] if self.has(key) else None

    def has(self, key: ReleaseKey) -> bool:
        """Return whether the release of ``key`` was stored and not purged."""
        return key in self._state.stored and key not in self._state.purged

    def stored_many(self, keys: Sequence[ReleaseKey]) -> list[Released]:
        """Return stored releases with one receipt, the newest one's: the chain covers the rest."""
        self._journal.check_alive()
        if not keys:
            return []
        bodies = self._journal.bodies(keys)
        receipt = self._journal.receipt(max(keys, key=lambda key: self._state.stored[key][:2]))
        return [Released(key, body, receipt) for key, body in zip(keys, bodies, strict=True)]

    def signed_head(self, federation: str) -> SignedHead:
        """Return the end of the chain under the ledger's key, for a federation to keep."""
        with self.lock:
            return self._journal.signed_head(federation)

    def check_evidence(self, evidence: Evidence) -> None:
        """Stop for good if a receipt or head, which someone kept, is not this ledger's past."""
        self._journal.check_evidence(evidence)

    # -- writing ---------------------------------------------------------------------------------

    def admit(self, job: str, *, units: int, account: str = "", after: str = "") -> None:
        """Set aside ``units`` for ``job``, of what ``after`` kept for it; once, however often."""
        refused: Mapping[str, Refusal] = {}
        if account or after not in self._state.kept:
            refused = self.admit_many(job, [account], units=units)
        elif check_after(self._state, job, after, units):
            refused = self._people.reserve(job, [""], units, after=after) if self._people else {}
            self._journal.append([] if refused else [admission_after(job, after, units)])
        for refusal in refused.values():
            raise refusal

    def admit_many(self, job: str, accounts: Sequence[str], *, units: int) -> dict[str, Refusal]:
        """Set aside ``units`` of each account in one commit; return who cannot afford it."""
        self._journal.check_alive()
        refused, new, month = dict[str, Refusal](), array("Q"), self._month(job)
        for at, account in distinct(accounts):
            try:
                if check_admission(self._state, job, account, units, month=month):
                    new.append(at)
            except REFUSALS as refusal:
                refused[account] = refusal
        if new:
            self._journal.storage.require_space(_ADMISSION_BYTES * len(new))
        with self.lock:
            if new and self._people:  # first, and durably
                refused |= self._people.reserve(job, [accounts[at] for at in new], units)
                new = array("Q", [at for at in new if accounts[at] not in refused])
            parts = (new[at : at + MAX_TOGETHER] for at in range(0, len(new), MAX_TOGETHER))
            groups = ([accounts[at] for at in part] for part in parts)
            self._journal.append(admission(job, group, units, month) for group in groups)
        return refused

    def _month(self, job: str) -> str:
        """Return the month of a job's first admission, or this one."""
        if (first := self._state.scoped.month_of(job)) is not None:
            return first
        return datetime.fromtimestamp(self._journal.now(), UTC).strftime("%Y-%m")

    def close_job(self, job: str, *, keep: int = 0) -> None:
        """Free what ``job`` had set aside, or kept, but for ``keep``; never charge it again."""
        self._journal.check_alive()
        if job not in self._state.closed or (job in self._state.kept and not keep):
            self._journal.append([settling(job, keep) if keep else closing(job)])
            if self._people:
                self._people.settle()

    def charge(self, key: ReleaseKey, mechanism: Mechanism, *, request_sha256: str) -> Mechanism:
        """Pay for ``key``, durably and once; return the mechanism of the entry: what to use."""
        for refusal in self.charge_many([ReleaseRequest(key, mechanism, request_sha256)]).values():
            raise refusal
        return self._state.charges[key].mechanism

    def charge_many(self, requests: Sequence[ReleaseRequest]) -> dict[ReleaseKey, Refusal]:
        """Pay for every request by itself, all in one commit; return those that are refused.

        What was paid for before, with the same request, is not charged again.
        """
        self._journal.check_alive()
        keys = {request.key for request in requests}
        if len(keys) != len(requests) or len(requests) > MAX_TOGETHER:
            raise ValueError(f"at most {MAX_TOGETHER} releases are paid for at once, none twice")
        if not keys <= self._state.charges.keys():
            self._journal.storage.require_space()
        refused = self._people.pay_for(requests) if self._people else {}
        paid = [request for request in requests if request.key not in refused]
        self._journal.append(self._charges(paid, refused))
        return refused

    def _charges(
        self, requests: Sequence[ReleaseRequest], refused: dict[ReleaseKey, Refusal]
    ) -> Iterator[Draft]:
        """Yield what is paid for together, once everything before it has been paid.

        Two releases of one account may each be affordable and not both, so the second is looked at
        when the first has been charged. Those of one group are of different accounts.
        """
        for _, group in itertools.groupby(requests, lambda each: (each.key[:3], each.mechanism)):
            new = []
            for request in group:
                key, mechanism, digest = request
                try:
                    if check_charge(self._state, key, mechanism=mechanism, request_sha256=digest):
                        new.append(request)
                except REFUSALS as refusal:
                    refused[key] = refusal
            if new:
                yield charge(new)

    def store(self, key: ReleaseKey, body: bytes) -> Released:
        """Keep the bytes of a paid release, durably, and hand them out."""
        self.store_many({key: body})
        return self.stored_many([key])[0]

    def store_many(self, bodies: Mapping[ReleaseKey, bytes]) -> None:
        """Keep the bytes of paid releases, durably and in one commit."""
        self._journal.check_alive()
        if sum(map(len, bodies.values())) > MAX_BODY_BYTES:
            raise ValueError(f"releases stored together have at most {MAX_BODY_BYTES} bytes")
        groups = itertools.groupby(bodies.items(), lambda item: (item[0][:3], len(item[1])))
        self._journal.append((self._storing(dict(group)) for _, group in groups), releases=True)

    def _storing(self, bodies: Mapping[ReleaseKey, bytes]) -> Draft:
        return storing(bodies, spent=[self._state.spent_by(key.account) for key in bodies])

    def abandon_many(self, keys: Sequence[ReleaseKey]) -> dict[ReleaseKey, Refusal]:
        """Abandon paid releases, durably, and return their refusals: they stay paid for."""
        self._journal.check_alive()
        groups = itertools.groupby(keys, lambda key: key[:3])
        self._journal.append((abandoning(list(group)) for _, group in groups), releases=True)
        return {key: abandonment(key) for key in keys}

    def purge(self, key: ReleaseKey) -> None:
        """Delete the bytes of ``key`` and leave a tombstone: it is never answered again."""
        if key not in self._state.stored:
            raise BadInput(f"there is no stored release {key.kind} of round {key.round} to purge")
        self.purge_many([] if key in self._state.purged else [key])

    def purge_many(self, keys: Sequence[ReleaseKey], *, for_good: bool = False) -> None:
        """Delete the bytes of stored releases in one commit; ``for_good``: from the files too."""
        self._journal.append([purging(key, self._state.stored[key]) for key in keys])
        if for_good:
            self._journal.scrub()

    def set_cap(
        self,
        units: int,
        *,
        reason: str,
        account: str = "",
        scope: str = "",
        approvers: Sequence[Ed25519PrivateKey] = (),
    ) -> None:
        """Append a signed cap; a raise needs as many approvers as decisions do, if any."""
        self._journal.check_alive()
        entry = signed_cap(
            self.opened.ledger_id,
            self._state.next_seq,
            CapSet(scope, account, units, reason, "", ""),
            sign=self._journal.sign,
            approvers=approvers,
        )
        try:
            check_cap(self._state, entry)
        except ValueError as error:
            raise BadInput(f"the cap was not changed: {error}") from None
        self._journal.append([Draft(entry)], releases=True)

    def bind(self, entry: Bound | Joined) -> None:
        """Append which table, or with which account of its people, is paid for from now on."""
        self._journal.check_alive()
        self._journal.append([Draft(entry)], releases=True)

    def seal(self, digest: bytes) -> str:
        """Return a keyed name of what has ``digest``: nobody can try tables out on an export."""
        return hashlib.sha256(self.sign(b"colonnade rows of a ledger\0" + digest)).hexdigest()

    def sign(self, message: bytes) -> bytes:
        """Sign ``message`` with the ledger's key."""
        return self._journal.sign(message)

    def close(self) -> None:
        """Close the files."""
        self._journal.close()
