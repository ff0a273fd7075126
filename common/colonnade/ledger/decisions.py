"""Approvals and refusals of jobs: signed with an approver's key, and what they amount to.

Privacy: a job for which the policy asks people is admitted only once enough of them agreed, each
with a key that the ledger names. That is a rule of the ledger's state, so it holds when a ledger
opens and when an auditor reads an export, not only where a party looks at its policy.
"""

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.core.errors import AwaitingApproval, JobClosed
from colonnade.ledger.entries import canonical
from colonnade.ledger.job_entries import ApproversSet, Decided, Declined, PolicyNoted, Proposed
from colonnade.ledger.receipts import public_bytes, verify

AUTO, ASK, NONE = "auto", "ask", "none"
APPROVE, HOLD, REFUSE = "approve", "hold", "refuse"
MAX_APPROVERS = 16
MAX_REASON = 500
_SIGNATURE = 64  # bytes of one


class Standing(enum.Enum):
    """What people's decisions on a job come to."""

    WAITING = "waiting"
    HELD = "held"
    APPROVED = "approved"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Proposal:
    """The newest word of the policy on a job, and where its specification is kept."""

    entry: Proposed
    seq: int  # of the row with the bytes; 0 if they are not kept


@dataclass(slots=True)
class Docket:
    """All jobs that were proposed, with what was decided on them."""

    approvers: tuple[str, ...] = ()
    proposals: dict[str, Proposal] = field(default_factory=dict)
    decisions: dict[str, list[Decided]] = field(default_factory=dict)
    declined: dict[str, Declined] = field(default_factory=dict)
    policies: dict[int, tuple[PolicyNoted, int]] = field(default_factory=dict)  # with their rows

    @property
    def policy(self) -> PolicyNoted | None:
        """The policy in use."""
        return self.policies[len(self.policies)][0] if self.policies else None

    @property
    def quorum(self) -> int:
        """How many approvers raise a cap or change who approves: as many as any decision needed.

        A policy that asks fewer from now on does not lower it, or one of two could replace both.
        """
        asked = [each.entry.approvals for each in self.proposals.values()]
        noted = [policy.approvals for policy, _ in self.policies.values()]
        return min(len(self.approvers), max([1, *asked, *noted]))

    def standing(self, job: str) -> Standing:
        """Return what the newest decision of each approver comes to: a refusal, a hold, or enough.

        Only those count who may decide now.
        """
        verdicts = [each.verdict for each in self._newest(job)]
        if REFUSE in verdicts:
            return Standing.REFUSED
        if HOLD in verdicts:
            return Standing.HELD
        agreed = verdicts.count(APPROVE)
        proposal = self.proposals.get(job)
        enough = proposal is not None and agreed >= proposal.entry.approvals
        return Standing.APPROVED if enough else Standing.WAITING

    def agreed(self, job: str) -> int:
        """Return how many people's newest word is that they agree."""
        return sum(each.verdict == APPROVE for each in self._newest(job))

    def _newest(self, job: str) -> list[Decided]:
        """Return the newest decision of each who may decide now, or who refused; oldest first."""
        newest: dict[str, Decided] = {}
        for each in self.decisions.get(job, ()):
            if each.approver in self.approvers or each.verdict == REFUSE:
                newest.pop(each.approver, None)
                newest[each.approver] = each
        return [*newest.values()]

    def check_approved(self, job: str, units: int | None = None) -> None:
        """Refuse to admit a job that people have yet to decide on, or at a higher price."""
        if (proposal := self.proposals.get(job)) is None:
            return  # the party's own: a purchase of bounds, a fit
        entry = proposal.entry
        if units is not None and units > entry.units:
            raise ValueError("a job is admitted at a higher price than was proposed")
        if entry.approve == NONE:
            raise ValueError("a job is admitted that the policy refused")
        if entry.approve == AUTO:
            return
        match self.standing(job):
            case Standing.APPROVED:
                return
            case Standing.REFUSED:
                raise JobClosed(f"the approver refused the job: {self.reason(job)}")
            case Standing.HELD:
                raise AwaitingApproval(f"the approver holds the job: {self.reason(job)}")
            case _:
                raise AwaitingApproval(
                    f"the job waits for the approver's decision ({self.agreed(job)} of "
                    f"{entry.approvals} agreed)"
                )

    def reason(self, job: str) -> str:
        """Return the reason of the newest hold or refusal that stands; nothing if none does."""
        for verdict in (REFUSE, HOLD):  # a refusal is final, whoever holds the job besides
            found = [each.reason for each in self._newest(job) if each.verdict == verdict]
            if found:
                return found[-1]
        return ""

    def next_number(self, job: str, approver: str) -> int:
        """Return the number of an approver's next decision on a job."""
        return 1 + sum(each.approver == approver for each in self.decisions.get(job, ()))

    # -- rules -----------------------------------------------------------------------------------

    def take_policy(self, entry: PolicyNoted, seq: int) -> None:
        """Take a policy that came into use."""
        if entry.version != len(self.policies) + 1 or min(entry.text_bytes, entry.approvals) < 0:
            raise ValueError("a policy is out of its order")
        _check_digest(entry.sha256)
        self.policies[entry.version] = (entry, seq)

    def take_proposal(self, entry: Proposed, seq: int) -> None:
        """Take what the policy says of a job that was not admitted."""
        _check_digest(entry.job)
        texts = (entry.coordinator, entry.requested_by, entry.purpose, entry.name, entry.kind)
        if not all(text.isprintable() for text in texts):
            raise ValueError("a proposal has a text that cannot be shown")
        if entry.approve not in (AUTO, ASK, NONE) or not 0 <= entry.policy <= len(self.policies):
            raise ValueError("a proposal says nothing of who decides, or names no policy")
        if (entry.approve == ASK) != (1 <= entry.approvals <= MAX_APPROVERS):
            raise ValueError("a proposal asks for the agreement of nobody, or of too many")
        if (entry.approve != NONE and entry.spec_bytes < 1) or min(
            entry.spec_bytes, entry.units
        ) < 0:
            raise ValueError("a proposal's specification is not kept")
        earlier = self.proposals.get(entry.job)
        if earlier is not None and earlier.entry.spec_bytes not in (0, entry.spec_bytes):
            raise ValueError("a proposal is said to have another size than before")
        kept = seq if entry.spec_bytes else 0
        self.proposals[entry.job] = Proposal(
            entry, earlier.seq if earlier and earlier.seq else kept
        )

    def take_refusal(self, entry: Declined) -> None:
        """Take the party's own refusal of a job."""
        if entry.job not in self.proposals or not (entry.code + entry.reason).isprintable():
            raise ValueError("a job is declined that was not proposed")
        self.declined[entry.job] = entry

    def check_decision(self, ledger_id: str, entry: Decided, *, admitted: bool) -> None:
        """Refuse a decision that no approver signed, or that comes too late or out of order."""
        proposal = self.proposals.get(entry.job)
        if proposal is None or proposal.entry.approve == NONE:
            raise ValueError("a decision is about a job that was not proposed, or is not allowed")
        if entry.verdict not in (APPROVE, HOLD, REFUSE):
            raise ValueError("a decision is neither to approve, to hold nor to refuse")
        if entry.verdict != REFUSE and (admitted or proposal.entry.approve != ASK):
            raise ValueError("a job that was admitted can only be refused from now on")
        if len(entry.reason) > MAX_REASON or not entry.reason.isprintable():
            raise ValueError(f"a reason has up to {MAX_REASON} printable characters")
        if entry.verdict != APPROVE and not entry.reason.strip():
            raise ValueError("to hold or to refuse takes a reason")
        if entry.approver not in self.approvers:
            raise ValueError("a decision is signed by a key that is no approver's")
        if entry.number != self.next_number(entry.job, entry.approver):
            raise ValueError("a decision was overtaken by a later one of the same approver")
        message = decision_statement(ledger_id, entry)
        if not verify(bytes.fromhex(entry.approver), bytes.fromhex(entry.signature), message):
            raise ValueError("a decision is not signed by the approver's key")

    def take_decision(self, entry: Decided) -> None:
        """Take a decision that was checked."""
        self.decisions.setdefault(entry.job, []).append(entry)

    def check_approvers(self, ledger_id: str, seq: int, entry: ApproversSet, key: str) -> None:
        """Refuse approvers whom the ledger's key and enough of those until now did not sign for."""
        check_keys(entry.keys)
        message, signatures = approvers_statement(ledger_id, seq, entry), entry.approver_signatures
        if not entry.reason.strip() or not entry.reason.isprintable():
            raise ValueError("a change of approvers takes a reason")
        if not verify(bytes.fromhex(key), bytes.fromhex(entry.signature), message):
            raise ValueError("a change of approvers is not signed by the ledger's key")
        signed = self._signers([*map(bytes.fromhex, signatures)], message)
        if signed < self.quorum:
            raise ValueError(
                f"a change of approvers needs the keys of {self.quorum} of those named until now, "
                f"and has {signed}"
            )

    def check_signed(self, signatures: str, message: bytes) -> None:
        """Refuse what fewer approvers signed than decisions need; signatures follow one another."""
        found = bytes.fromhex(signatures)
        each = [found[at : at + _SIGNATURE] for at in range(0, len(found), _SIGNATURE)]
        if len(each) > MAX_APPROVERS:
            raise ValueError("a raise of the cap has more signatures than there are approvers")
        signed = self._signers(each, message)
        if signed < self.quorum:
            raise ValueError(
                f"a raise of the cap is not signed by enough approvers' keys: {signed} of "
                f"{self.quorum}"
            )

    def _signers(self, signatures: Sequence[bytes], message: bytes) -> int:
        """Return how many of the approvers signed a message."""
        keys = map(bytes.fromhex, self.approvers)
        return sum(any(verify(key, each, message) for each in signatures) for key in keys)


def check_keys(keys: list[str]) -> None:
    """Refuse a list of approvers with a key that is none, or twice."""
    if len(keys) > MAX_APPROVERS or len({*keys}) != len(keys):
        raise ValueError(f"a ledger has up to {MAX_APPROVERS} different approvers")
    for key in keys:
        _check_digest(key)


def decision_statement(ledger_id: str, entry: Decided) -> bytes:
    """Return the bytes that an approver signs."""
    facts = {
        "ledger_id": ledger_id,
        "job": entry.job,
        "verdict": entry.verdict,
        "reason": entry.reason,
        "number": entry.number,
        "approver": entry.approver,
    }
    return b"colonnade decision v1\0" + canonical(facts).encode()


def approvers_statement(ledger_id: str, seq: int, entry: ApproversSet) -> bytes:
    """Return the bytes that the ledger's key and an approver sign for a change of approvers."""
    facts = {"ledger_id": ledger_id, "seq": seq, "keys": entry.keys, "reason": entry.reason}
    return b"colonnade approvers v1\0" + canonical(facts).encode()


def signed_decision(
    ledger_id: str, job: str, verdict: str, *, reason: str, number: int, key: Ed25519PrivateKey
) -> Decided:
    """Return an approver's decision on a job."""
    entry = Decided(job, verdict, reason, number, public_bytes(key).hex(), "")
    return replace(entry, signature=key.sign(decision_statement(ledger_id, entry)).hex())


def signed_approvers(
    entry: ApproversSet,
    statement: bytes,
    *,
    sign: Callable[[bytes], bytes],
    approvers: Sequence[Ed25519PrivateKey],
) -> ApproversSet:
    """Return a change of approvers with its signatures."""
    return replace(
        entry,
        signature=sign(statement).hex(),
        approver_signatures=[each.sign(statement).hex() for each in approvers],
    )


def _check_digest(text: str) -> None:
    if len(text) != 64 or text.strip("0123456789abcdef"):
        raise ValueError("an entry has a digest or a key that is none")
