"""The export of a ledger, and the check of one: what an auditor works with.

An export is a text file. Each line but the last is a ledger entry, exactly as the hash chain
covers it; the last states the head under the ledger's signature. No body is in it, and of the
party's table only a hash under the ledger's key. From the lines alone an auditor recomputes the
chain, the price of every release from its mechanism's integers, every total, and that no cap was
ever exceeded.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from colonnade.core.errors import LedgerDamaged, VerificationFailed
from colonnade.ledger.bundle import Attached, head_line, head_statement
from colonnade.ledger.caps import ScopedBudget
from colonnade.ledger.entries import Bound
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.receipts import Receipt, verify
from colonnade.ledger.rules.fold import apply_line
from colonnade.ledger.state import LedgerState
from colonnade.privacy.membership import MembershipNoise

_NOTHING = Attached().digest


@dataclass(frozen=True, slots=True)
class Account:
    """What one account may spend, has spent and has set aside, in units."""

    name: str
    cap: int
    spent: int
    reserved: int
    releases: int
    delta: float = 0.0  # of the alignments that it paid for, together; rho does not cover it
    runs_epsilon: float = 0.0  # of those alignments, added up (basic composition)
    runs_units: int = 0  # what they cost; less than was spent if another ledger's is adopted

    @property
    def left(self) -> int:
        """What it may still spend beside what is set aside."""
        return self.cap - self.spent - self.reserved


@dataclass(frozen=True, slots=True)
class Summary:
    """What a ledger comes to."""

    ledger_id: str
    party: str
    public_key: str
    approver_keys: tuple[str, ...]
    continues: tuple[str, ...]
    simulation: bool
    entries: int
    chain_hash: str
    accounts: tuple[Account, ...]
    by_mechanism: tuple[tuple[str, int, int], ...]  # name, releases, units
    scoped: tuple[ScopedBudget, ...]  # by person, operator, purpose and month
    bound: Bound | None  # the table that is paid for
    abandoned: int  # releases that were paid for and never made


def export_lines(ledger: Ledger) -> Iterator[str]:
    """Yield the lines of an export, the signed head last."""
    yield from ledger.lines()
    yield head_line(ledger.state, ledger.sign)


@dataclass(frozen=True, slots=True)
class Verified:
    """What a file that verifies holds."""

    state: LedgerState
    attached: Attached
    lines: tuple[str, ...]  # the entries


def verify_export(lines: Iterable[str], *, receipt: Receipt | None = None) -> Summary:
    """Recompute everything in an export or a bundle, and add it up."""
    return summarise(verify_lines(lines, receipt=receipt).state)


def verify_lines(lines: Iterable[str], *, receipt: Receipt | None = None) -> Verified:
    """Recompute everything in an export; `VerificationFailed` names the first thing that is wrong.

    An export proves that it is consistent and signed by the key it names. That the key is the
    right one, and that the export is not an older one, only someone outside can know: compare the
    public key, and give a ``receipt`` that the export must contain.
    """
    state, attached, head, entries = LedgerState(), Attached(), dict[str, object](), list[str]()
    for line in lines:
        if head:
            raise VerificationFailed(
                "the export goes on after its head; it was put together from parts"
            )
        if '"type":"head"' in line:
            head = _read_head(line)
        elif Attached.is_one(line):
            attached.take(line)
        else:
            if attached.lines:
                raise VerificationFailed("an entry comes after what is attached to the entries")
            _apply(state, line)
            entries.append(line)
    opened = state.opened
    if opened is None or not head:
        raise VerificationFailed("the export is cut short; ask for it again")
    _check_head(state, attached, head)
    public_key = bytes.fromhex(opened.public_key)
    if receipt is not None and not (
        receipt.signed_by(public_key) and state.on_chain(receipt.seq, receipt.chain_hash)
    ):
        raise VerificationFailed(
            "the export does not contain the receipt; it is older or another ledger's"
        )
    return Verified(state, attached, tuple(entries))


def _apply(state: LedgerState, line: str) -> None:
    try:
        apply_line(state, line)
    except LedgerDamaged as error:
        raise VerificationFailed(f"the export does not verify: {error}") from None


def _check_head(state: LedgerState, attached: Attached, head: dict[str, object]) -> None:
    """Refuse a head that is not of these lines, or not signed."""
    if state.opened is None:
        raise ValueError("an empty ledger has no head")
    signature = head.pop("signature")
    told = (head.get("seq"), head.get("chain_hash"), head.get("spent"), head.get("ledger_id"))
    found = (state.head.seq, state.head.chain_hash.hex(), state.total, state.opened.ledger_id)
    if told != found:
        raise VerificationFailed("the export's entries do not add up to its head; ask for it again")
    if (head.get("attached", 0), head.get("attached_sha256", _NOTHING)) != (
        attached.lines,
        attached.digest,
    ):
        raise VerificationFailed("what is attached to the entries was changed or left out")
    public_key = bytes.fromhex(state.opened.public_key)
    if not verify(public_key, bytes.fromhex(str(signature)), head_statement(head)):
        raise VerificationFailed("the export's head is not signed by the ledger's key")
    if attached.lines:
        attached.check(state)


def _read_head(line: str) -> dict[str, object]:
    try:
        head = json.loads(line)
        bytes.fromhex(head["signature"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise VerificationFailed("the export's last line is damaged; ask for it again") from None
    return dict(head)


def summarise(state: LedgerState, person: ScopedBudget | None = None) -> Summary:
    """Add up a ledger; ``person`` is what the account of its people says, if that is at hand."""
    opened = state.opened
    if opened is None:
        raise ValueError("an empty ledger has no summary")
    releases: dict[str, int] = {}
    mechanisms: dict[str, tuple[int, int]] = {}
    deltas: dict[str, float] = {}
    runs: dict[str, tuple[float, int]] = {}
    for key, charge in state.charges.items():
        releases[key.account] = releases.get(key.account, 0) + 1
        name = charge.mechanism.name
        count, units = mechanisms.get(name, (0, 0))
        mechanisms[name] = (count + 1, units + charge.units)
        if isinstance(charge.mechanism, MembershipNoise):
            deltas[key.account] = deltas.get(key.account, 0.0) + charge.mechanism.delta
            epsilon, paid = runs.get(key.account, (0.0, 0))
            runs[key.account] = epsilon + float(charge.mechanism.epsilon), paid + charge.units
    names = sorted({*state.caps, *state.spent, *state.reserved})
    return Summary(
        ledger_id=opened.ledger_id,
        party=opened.party,
        public_key=opened.public_key,
        approver_keys=state.docket.approvers,
        continues=tuple(opened.continues),
        simulation=opened.simulation,
        entries=state.head.seq,
        chain_hash=state.head.chain_hash.hex(),
        accounts=tuple(
            Account(
                name,
                state.cap(name),
                state.spent_by(name),
                state.reserved.get(name, 0),
                releases.get(name, 0),
                deltas.get(name, 0.0),
                *runs.get(name, (0.0, 0)),
            )
            for name in names
        ),
        by_mechanism=tuple((name, *mechanisms[name]) for name in sorted(mechanisms)),
        scoped=tuple(filter(None, (person or state.people.budget(), *state.scoped.budgets()))),
        bound=state.bound,
        abandoned=len(state.abandoned),
    )
