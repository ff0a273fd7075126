"""The ledger: a party's append-only account of everything it ever released.

Privacy: the promise that a party's total is at most its cap rests on these rules. A release is
charged, durably, before a row is read. A key is charged once and has one body, ever. Nothing is
refunded. The sum of charges and of what open jobs have set aside never exceeds the cap. A ledger
that cannot prove it is whole (chain, mirror, digests, prices) does not open; one that fails to
write stops for good. What is written together passes the same rules, one account at a time.
"""

import hashlib
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.core.errors import (
    BadInput,
    JobClosed,
    LedgerDamaged,
    LedgerFailed,
    LedgerRolledBack,
)
from colonnade.ledger.caps import MONTH, signed_cap
from colonnade.ledger.decisions import approvers_statement, signed_approvers
from colonnade.ledger.drafts import (
    Draft,
    ReleaseRequest,
    abandoning,
    admission,
    charge,
    closing,
    deciding,
    proposing,
    purging,
    storing,
)
from colonnade.ledger.entries import Bound, CapSet, Opened, ReleaseKey
from colonnade.ledger.heads import Evidence, SignedHead, evidence_line, knows
from colonnade.ledger.job_entries import ApproversSet, Decided, Declined, PolicyNoted, Proposed
from colonnade.ledger.lines import entry_time, line_of
from colonnade.ledger.receipts import Receipt, public_bytes
from colonnade.ledger.state import REFUSALS, Head, LedgerState, Refusal, abandonment
from colonnade.ledger.storage.base import MAX_BODY_BYTES, Row, Storage
from colonnade.ledger.storage.loading import load_state
from colonnade.privacy.accounting import Budget
from colonnade.privacy.mechanisms import Mechanism

# A commit with so many charges surely fits the disk space that is asked for before one.
MAX_TOGETHER = 1024
# More than the line of an admission has for each account.
_ADMISSION_BYTES = 512


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
        self, storage: Storage, signer: Ed25519PrivateKey, clock: Callable[[], float]
    ) -> None:
        self._storage, self._signer, self._clock = storage, signer, clock
        self._failed, self._process = False, os.getpid()
        self.lock = threading.RLock()
        self._state = load_state(storage)
        opened = self._state.opened
        if opened is None or opened.public_key != public_bytes(signer).hex():
            raise LedgerDamaged("the ledger key is not this ledger's; restore the right one")
        self.opened: Opened = opened
        self._ledger_id = bytes.fromhex(opened.ledger_id)
        # A process that was killed may have left commits that only the page cache holds and the
        # mirror does not know. They are replayed from now on, so they must be as durable as new.
        storage.settle(self._state.head)

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
        return (line for _, line, _ in self._storage.rows())

    def budget(self, account: str = "") -> Budget:
        """Return cap and spending of ``account``."""
        return self._state.budget(account)

    def free(self, account: str = "") -> int:
        """Return what an account has neither spent nor set aside, in units."""
        return self._state.unreserved(account).remaining

    def stored(self, key: ReleaseKey) -> Released | None:
        """Return the release of ``key`` if it was stored and not purged."""
        self._check_alive()
        return self.stored_many([key])[0] if self.has(key) else None

    def has(self, key: ReleaseKey) -> bool:
        """Return whether the release of ``key`` was stored and not purged."""
        return key in self._state.stored and key not in self._state.purged

    def stored_many(self, keys: Sequence[ReleaseKey]) -> list[Released]:
        """Return stored releases with one receipt, the newest one's: the chain covers the rest."""
        self._check_alive()
        if not keys:
            return []
        self._failed = True
        bodies = list(self._bodies(keys))
        self._failed = False
        receipt = self._receipt(max(keys, key=lambda key: self._state.stored[key][:2]))
        return [Released(key, body, receipt) for key, body in zip(keys, bodies, strict=True)]

    def signed_head(self, federation: str) -> SignedHead:
        """Return the end of the chain under the ledger's key, for a federation to keep."""
        self._check_alive()
        with self.lock:
            head = self.head
        facts = (head.seq, head.chain_hash, head.spent, head.cap, head.highest)
        told = SignedHead(federation, self.opened.party, self._ledger_id, *facts)
        return replace(told, signature=self._signer.sign(told.statement()))

    def check_evidence(self, evidence: Evidence) -> None:
        """Stop for good if a receipt or head, which someone kept, is not this ledger's past."""
        if not evidence.signed_by(bytes.fromhex(self.opened.public_key)):
            raise BadInput("what was shown is not signed by this ledger; show what it gave")
        if knows(self._state, evidence):
            return
        self._failed = True
        reason = (
            f"a {evidence.type} of entry {evidence.seq} is held elsewhere but this ledger ends at "
            f"{self.head.seq} or differs there: it was restored or run twice"
        )
        # A restart must not forget it, nor a recovery.
        self._storage.stop(f"{reason}\n{evidence_line(evidence)}")
        raise LedgerRolledBack(f"{reason}; see 'colonnade ledger recover'")

    # -- writing ---------------------------------------------------------------------------------

    def admit(self, job: str, *, units: int, account: str = "") -> None:
        """Set aside ``units`` for ``job``; asking the same again changes nothing."""
        for refusal in self.admit_many(job, [account], units=units).values():
            raise refusal

    def admit_many(self, job: str, accounts: Sequence[str], *, units: int) -> dict[str, Refusal]:
        """Set aside ``units`` of each account in one commit; return who cannot afford it."""
        self._check_alive()
        refused, new = dict[str, Refusal](), list[str]()
        month = self._month(job)
        for account in dict.fromkeys(accounts):
            try:
                if self._state.check_admission(job, account, units, month=month):
                    new.append(account)
            except REFUSALS as refusal:
                refused[account] = refusal
        if new:
            self._storage.require_space(_ADMISSION_BYTES * len(new))
        groups = (new[at : at + MAX_TOGETHER] for at in range(0, len(new), MAX_TOGETHER))
        self._append(admission(job, group, units, month) for group in groups)
        return refused

    def _month(self, job: str) -> str:
        """Return the month of a job's first admission, or this one."""
        for scope, name in self._state.scoped.places.get(job, ()):
            if scope == MONTH:
                return name
        return datetime.fromtimestamp(entry_time(self._clock()), UTC).strftime("%Y-%m")

    def propose(self, entry: Proposed, spec: bytes) -> None:
        """Note a job and what the policy says of it; the same again changes nothing."""
        self._check_alive()
        known = self._state.docket.proposals.get(entry.job)
        if known is not None and known.entry == entry:
            return
        keep = entry.spec_bytes > 0 and (known is None or not known.seq)
        self._storage.require_space(len(spec))
        self._append([proposing(entry, spec if keep else None)])

    def decline(self, entry: Declined) -> None:
        """Note that the party itself refused a job; the same again changes nothing."""
        self._check_alive()
        if self._state.docket.declined.get(entry.job) != entry:
            self._append([Draft(entry)])

    def decide(self, entry: Decided) -> bool:
        """Append an approver's decision; return False if it is there already."""
        self._check_alive()
        if entry in self._state.docket.decisions.get(entry.job, ()):
            return False
        try:
            self._state.check_decision(entry)
        except (ValueError, JobClosed) as error:
            raise BadInput(f"the decision does not count: {error}") from None
        self._append([deciding(entry)], releases=True)
        return True

    def note_policy(self, text: bytes) -> int:
        """Note the policy that comes into use and return its version."""
        self._check_alive()
        docket, digest = self._state.docket, hashlib.sha256(text).hexdigest()
        if docket.policy is None or docket.policy.sha256 != digest:
            version = len(docket.policies) + 1
            self._append([Draft(PolicyNoted(version, digest, len(text)), body=text)])
        return len(docket.policies)

    def specification(self, job: str) -> bytes:
        """Return the bytes of a job that was proposed."""
        self._check_alive()
        found = self._state.docket.proposals.get(job)
        if found is None or not found.seq or (spec := self._storage.body(found.seq)) is None:
            raise BadInput("the ledger keeps no specification of that job")
        if hashlib.sha256(spec).hexdigest() != job:
            self._failed = True
            raise LedgerFailed("a kept specification has changed; stop and verify the ledger")
        return spec

    def set_approvers(
        self, keys: Sequence[bytes], *, reason: str, approver: Ed25519PrivateKey | None = None
    ) -> None:
        """Append who decides from now on; one who decided until now signs too."""
        self._check_alive()
        entry = ApproversSet([key.hex() for key in keys], reason, "", "")
        statement = approvers_statement(self.opened.ledger_id, self._state.next_seq, entry)
        entry = signed_approvers(entry, statement, sign=self._signer.sign, approver=approver)
        try:
            self._append([Draft(entry)], releases=True)
        except ValueError as error:
            raise BadInput(f"the approvers were not changed: {error}") from None

    def close_job(self, job: str) -> None:
        """Free what ``job`` had set aside and never charge it again."""
        self._check_alive()
        if job not in self._state.closed:
            self._append([closing(job)])

    def charge(self, key: ReleaseKey, mechanism: Mechanism, *, request_sha256: str) -> Mechanism:
        """Pay for ``key``, durably; asking the same again changes nothing.

        Returns the mechanism that was paid for, made from the entry: what must be used.
        """
        for refusal in self.charge_many([ReleaseRequest(key, mechanism, request_sha256)]).values():
            raise refusal
        return self._state.charges[key].mechanism

    def charge_many(self, requests: Sequence[ReleaseRequest]) -> dict[ReleaseKey, Refusal]:
        """Pay for every ask by itself, all in one commit; return those that are refused.

        What was paid for before, with the same request, is not charged again.
        """
        self._check_alive()
        keys = {ask.key for ask in requests}
        if len(keys) != len(requests) or len(requests) > MAX_TOGETHER:
            raise ValueError(f"at most {MAX_TOGETHER} releases are paid for at once, none twice")
        if not keys <= self._state.charges.keys():
            self._storage.require_space()
        refused = dict[ReleaseKey, Refusal]()
        self._append(self._charges(requests, refused))
        return refused

    def _charges(
        self, requests: Sequence[ReleaseRequest], refused: dict[ReleaseKey, Refusal]
    ) -> Iterator[Draft]:
        """Yield what is paid for together, once everything before it has been paid.

        Two releases of one account may each be affordable and not both, so the second is looked at
        when the first has been charged. Those of one group are of different accounts.
        """
        for _, group in itertools.groupby(requests, lambda ask: (ask.key[:3], ask.mechanism)):
            new = []
            for ask in group:
                key, mechanism, request = ask.key, ask.mechanism, ask.request_sha256
                try:
                    if self._state.check_charge(key, mechanism=mechanism, request_sha256=request):
                        new.append(ask)
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
        self._check_alive()
        if sum(map(len, bodies.values())) > MAX_BODY_BYTES:
            raise ValueError(f"releases stored together have at most {MAX_BODY_BYTES} bytes")
        groups = itertools.groupby(bodies.items(), lambda item: (item[0][:3], len(item[1])))
        self._append((self._storing(dict(group)) for _, group in groups), releases=True)

    def _storing(self, bodies: Mapping[ReleaseKey, bytes]) -> Draft:
        return storing(bodies, spent=[self._state.spent_by(key.account) for key in bodies])

    def abandon_many(self, keys: Sequence[ReleaseKey]) -> dict[ReleaseKey, Refusal]:
        """Give up on paid releases, durably, and return their refusals: they stay paid for."""
        self._check_alive()
        groups = itertools.groupby(keys, lambda key: key[:3])
        self._append((abandoning(list(group)) for _, group in groups), releases=True)
        return {key: abandonment(key) for key in keys}

    def purge(self, key: ReleaseKey) -> None:
        """Delete the bytes of ``key`` and leave a tombstone: it is never answered again."""
        self._check_alive()
        if key in self._state.purged:
            return
        if key not in self._state.stored:
            raise BadInput(f"there is no stored release {key.kind} of round {key.round} to purge")
        self.purge_many([key])

    def purge_many(self, keys: Sequence[ReleaseKey]) -> None:
        """Delete the bytes of stored releases in one commit."""
        self._check_alive()
        if keys:
            self._append([purging(key, self._state.stored[key]) for key in keys])

    def set_cap(
        self,
        units: int,
        *,
        reason: str,
        account: str = "",
        scope: str = "",
        approver: Ed25519PrivateKey | None = None,
    ) -> None:
        """Append a signed cap; a raise needs an approver's key too if the ledger names any."""
        self._check_alive()
        entry = signed_cap(
            self.opened.ledger_id,
            self._state.next_seq,
            CapSet(scope, account, units, reason, "", ""),
            signer=self._signer,
            approver=approver,
        )
        try:
            self._state.check_cap(entry)
        except ValueError as error:
            raise BadInput(f"the cap was not changed: {error}") from None
        self._append([Draft(entry)], releases=True)

    def bind(self, entry: Bound) -> None:
        """Append which table is paid for from now on, durably."""
        self._check_alive()
        self._append([Draft(entry)], releases=True)

    def seal(self, digest: bytes) -> str:
        """Return a name of what has ``digest`` that only the holder of this ledger's key can make.

        A plain digest would let whoever reads an export try out tables.
        """
        return hashlib.sha256(self.sign(b"colonnade rows of a ledger\0" + digest)).hexdigest()

    def sign(self, message: bytes) -> bytes:
        """Sign ``message`` with the ledger's key."""
        self._check_alive()
        return self._signer.sign(message)

    def close(self) -> None:
        """Close the files."""
        self._failed = True
        self._storage.close()

    # -- inside ----------------------------------------------------------------------------------

    def _check_alive(self) -> None:
        if self._failed or os.getpid() != self._process:  # a fork would draw twice for one charge
            raise LedgerFailed("the ledger has stopped; start the process again")

    def _append(self, drafts: Iterable[Draft], *, releases: bool = False) -> None:
        """Append in one commit; each draft is made when those before it count."""
        # Whatever interrupts the lines below, memory and disk may differ: then nothing goes on.
        self._failed = True
        now, rows = entry_time(self._clock()), list[Row]()
        try:
            for draft in drafts:
                line = line_of(draft.entry, seq=self._state.next_seq, time=now)
                self._state.extend(draft.entry, line)
                seq, chain_hash = self._state.next_seq - 1, self._state.hashes[-1]
                rows.append(
                    Row(seq, line, chain_hash, draft.idempotency_key, draft.body, draft.purges)
                )
        except (ValueError, *REFUSALS):
            self._failed = bool(rows)  # what came before it is in memory and not on disk
            raise
        if rows:
            self._storage.append(rows, self._state.head, releases=releases)
        self._failed = False

    def _bodies(self, keys: Sequence[ReleaseKey]) -> Iterator[bytes]:
        """Yield the bytes of stored releases, as they were stored."""
        seq, row = 0, None
        for key in keys:
            kept = self._state.stored[key]
            if kept.seq != seq:
                seq, row = kept.seq, self._storage.body(kept.seq)
            if row is None or (body := kept.of(row)) is None:
                raise LedgerFailed("a stored release has changed; stop and verify the ledger")
            yield body

    def _receipt(self, key: ReleaseKey) -> Receipt:
        kept = self._state.stored[key]
        facts = (
            self._ledger_id,
            kept.seq,
            self._state.hashes[kept.seq],
            key.account,
            kept.spent,
            key.digest(),
            bytes.fromhex(kept.body_sha256),
        )
        return Receipt(*facts, signature=self._signer.sign(Receipt(*facts).statement()))
