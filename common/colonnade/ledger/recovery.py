"""Recover from a damaged or rolled-back ledger without forgetting what was spent.

Privacy: a ledger that lost entries may have released more than it knows. The ledger that takes
over adopts the most that anyone can show, and where nobody can show it, everything:

- what the readable entries say;
- plus all that the mirror, or a head that the ledger signed for others, knows to be missing, and
  one release that may have been under way, but no account more than the highest cap known there;
- plus, for each account, the most that receipts from outside the readable chain show, on top and
  not instead, since a restored copy may have gone on releasing beside the original;
- the whole cap of every account if the mirror cannot be read, and if such a receipt is one of
  many accounts or of a prediction; after any, the caps of alignments and shields.

A cap is at least what its account adopts, so that nothing known is forgotten. Where a receipt
proves entries that neither the files nor the mirror know, it is no more than that, because a cap
lowered in them is not known either. Then nothing is left, and raising the cap afterwards is an
explicit, signed decision. What all accounts adopt, ``"*"``, counts for the default account too
unless it spent something itself: a host's, which belongs to nobody, has not.

What made a ledger stop for good is in its folder and counts by itself. The new ledger notes until
which place it accounts for the old one, and stops if it is shown more.

No release is carried over and old jobs are closed. The old ledger is stopped for good before the
new one exists, so that the two are never both alive.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import apsw

from colonnade.core.errors import BadInput, LedgerDamaged
from colonnade.ledger.caps import SCOPES, Place
from colonnade.ledger.create import Clock, LedgerConfig, create_ledger
from colonnade.ledger.heads import Evidence, SignedHead, evidence_in, knows
from colonnade.ledger.lines import chain
from colonnade.ledger.people.place import account_files, note_account
from colonnade.ledger.receipts import Receipt, ledger_key_from_file
from colonnade.ledger.rules.fold import apply_line
from colonnade.ledger.state import Head, LedgerState
from colonnade.ledger.storage.files import LedgerFiles, check_key, hold_lock, stop_ledger, sync_path
from colonnade.ledger.storage.loading import check_bodies
from colonnade.ledger.storage.mirror import HeadMirror, MirrorMark
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.privacy.disclosure import PREDICTION
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.privacy.ring_noise import HOSTILE


def recover_ledger(
    old: LedgerFiles,
    new: LedgerFiles,
    *,
    receipts: Sequence[Receipt] = (),
    clock: Clock = time.time,
) -> Mapping[str, int]:
    """Create ``new`` in place of ``old`` and return what each account adopts, in units."""
    if new.folder.exists() or new.mirror.exists():
        raise BadInput(f"{new.folder} or its mirror exists already; name a new folder")
    check_key(old)
    lock = hold_lock(old.lock)
    try:
        signer = ledger_key_from_file(old.key)
        with _held_mirror(old) as mirror:
            state, whole = _readable_part(old)
            config = _charter(old, state, mirror, [*receipts, *_kept(old)], whole=whole)
            stop_ledger(old, f"recovered into {new.folder}")
            create_ledger(new, config, signer=signer, clock=clock)
            if config.joined is not None:
                note_account(new, account_files(old))
            if mirror is not None:
                mirror.end(MirrorMark.REPLACED)  # nor do copies that use it open again
        old.key.unlink()
        sync_path(old.folder)
    finally:
        os.close(lock)
    return config.adopted


def _charter(
    old: LedgerFiles,
    state: LedgerState,
    held: HeadMirror | None,
    shown: Sequence[Evidence],
    *,
    whole: bool,
) -> LedgerConfig:
    opened = state.opened
    if opened is None or not state.caps:
        raise LedgerDamaged(
            f"no cap can be read from {old.folder}; ask the approver for a new ledger"
        )
    for each in shown:
        if not each.signed_by(bytes.fromhex(opened.public_key)):
            raise BadInput(f"a {each.type} was not signed by this ledger; leave it out")
    unknown = [each for each in shown if not knows(state, each)]
    strange = [each for each in unknown if isinstance(each, Receipt)]
    heads = [each for each in unknown if isinstance(each, SignedHead)]
    mirror = _worst(state, held, heads)
    agrees = mirror is not None and state.on_chain(mirror.seq, mirror.chain_hash)
    if whole and agrees and not strange and not old.stopped.exists():
        raise BadInput(f"the ledger in {old.folder} is whole; there is nothing to recover")
    adopted = _adopted(state, mirror, strange)
    caps = _caps(state, mirror, adopted, unknown=bool(strange))
    scoped, scoped_caps = _scoped(state, adopted)
    return LedgerConfig(
        party=opened.party,
        caps=caps,
        reason=f"recovered from ledger {opened.ledger_id}",
        approver_keys=tuple(bytes.fromhex(key) for key in state.docket.approvers),
        simulation=opened.simulation,
        continues=_accounted(state, held, shown),
        adopted=adopted,
        scoped_caps=scoped_caps,
        scoped_adopted=scoped,
        closed=frozenset(state.closed)
        | {key.job for key in state.charges}
        | {job for job, _ in state.admitted}
        | {*state.docket.proposals},
        bound=state.bound,  # the key stays the same, so it names the same table
        joined=state.people.joined,  # what the old one claimed of the account stays claimed
    )


def _accounted(
    state: LedgerState, held: HeadMirror | None, shown: Sequence[Evidence]
) -> dict[str, int]:
    """Return the ledgers that a new one continues, and until which place it accounts for them."""
    if state.opened is None:
        raise ValueError("an empty ledger is continued by none")
    places = [state.head.seq, *(head.seq for head in (held.heads if held else ()))]
    found = {state.opened.ledger_id: max(places)} | state.opened.predecessors
    for each in shown:
        name = each.ledger_id.hex()
        found[name] = max(found.get(name, 0), each.seq)
    return found


def _adopted(state: LedgerState, mirror: Head | None, strange: Sequence[Receipt]) -> dict[str, int]:
    """Return what each account adopts, in units; ``"*"`` stands for all that are not named."""
    shown: dict[str, int] = {}
    for receipt in strange:
        shown[receipt.account] = max(shown.get(receipt.account, 0), receipt.spent)
    named = {*state.caps, *state.spent, *shown} - {"", PREDICTION}  # which has no price
    own = {"", "*"} if "" in {*state.spent, *shown} else {"*"}
    known = {name: state.spent_by(name) + shown.get(name, 0) for name in named | own}
    if mirror is None or (strange and (named or PREDICTION in shown)):
        most = {name: max(state.cap(name), units) for name, units in known.items()}
    else:
        counted = {name: units + _lost(state, mirror, name) for name, units in known.items()}
        most = {
            name: units if strange else min(units, _ceiling(state, mirror, name))
            for name, units in counted.items()
        }
    if strange:  # one of the table says nothing of these
        most = {name: state.cap(name) for name in (MEMBERSHIP, HOSTILE)} | most
    return {name: min(units, MAX_UNITS) for name, units in most.items()}


def _scoped(
    state: LedgerState, adopted: Mapping[str, int]
) -> tuple[dict[Place, int], dict[Place, int]]:
    """Return what each operator, purpose and month adopts, and their caps.

    What is missing may have been anybody's, so it counts everywhere; no cap is below it.
    """
    lost = max((units - state.spent_by(name) for name, units in adopted.items()), default=0)
    known = {(each.scope, each.name): each.spent for each in state.scoped.budgets()}
    places = {(scope, ""): 0 for scope in SCOPES} | known
    found = {place: units + lost for place, units in places.items() if units + lost > 0}
    caps = {
        place: max(cap, found.get(place, found.get((place[0], ""), 0)))
        for place, cap in state.scoped.caps.items()
    }
    return {place: min(units, MAX_UNITS) for place, units in found.items()}, caps


def _lost(state: LedgerState, mirror: Head, account: str) -> int:
    """Return the most that an account may have spent beside the readable entries.

    One release may have been in progress, as dear as any that accounts of its kind paid.
    """
    kind, charges = _kind(account), state.charges.items()
    paid = (each.units for key, each in charges if _kind(key.account) == kind)
    return _missing(state, mirror) + max(paid, default=0)


def _kind(account: str) -> str:
    """Return which accounts pay for the same things; all of people and clients are one kind."""
    return account if account in (MEMBERSHIP, HOSTILE) else ""


def _missing(state: LedgerState, mirror: Head) -> int:
    """Return what the mirror knows to be spent and the readable entries do not."""
    return mirror.spent if _beside(state, mirror) else max(0, mirror.spent - state.total)


def _beside(state: LedgerState, mirror: Head) -> bool:
    """Return whether the mirror is of another ledger that went its own way."""
    return mirror.seq <= state.head.seq and not state.on_chain(mirror.seq, mirror.chain_hash)


def _ceiling(state: LedgerState, mirror: Head, name: str) -> int:
    """Return what an account cannot have spent more than: nobody spends beyond a cap."""
    if _beside(state, mirror):
        return state.spent_by(name) + mirror.highest
    cap = state.cap(name)
    return max(cap, mirror.highest) if mirror.seq > state.head.seq else cap


def _caps(
    state: LedgerState, mirror: Head | None, adopted: Mapping[str, int], *, unknown: bool
) -> dict[str, int]:
    """Return caps of at least what is adopted, by name; else at most the old ones, if known."""
    lost_tail = mirror is not None and mirror.seq > state.head.seq

    def cap(name: str, units: int) -> int:
        if unknown:
            units = 0
        elif mirror is not None and lost_tail:
            units = min(units, mirror.cap)
        return max(units, adopted.get(name, adopted["*"]), adopted["*"] if name == "" else 0)

    caps = {name: cap(name, units) for name, units in state.caps.items()}
    return caps | {
        name: units
        for name, units in adopted.items()
        if name not in {*caps, "*"} and units > caps[""]
    }


@contextmanager
def _held_mirror(files: LedgerFiles) -> Iterator[HeadMirror | None]:
    """Hold the mirror of a ledger; None if there is none that can be read.

    A copy that runs has the lock. One whose mirror was marked and whose folder was not is a copy
    of the ledger that was stopped or recovered: that one counts.
    """
    try:
        mirror = HeadMirror(files.mirror)
    except OSError:
        yield None
        return
    try:
        mirror.hold()
        copied = mirror.mark is MirrorMark.STOPPED and not files.stopped.exists()
        if copied or mirror.mark is MirrorMark.REPLACED:
            raise BadInput(
                f"{files.folder} is a copy of a ledger that was stopped or recovered elsewhere, "
                f"as its mirror {files.mirror} says; recover or use that one"
            )
        yield mirror
    finally:
        mirror.close()


def _worst(state: LedgerState, held: HeadMirror | None, shown: Sequence[SignedHead]) -> Head | None:
    """Return the head that knows most beside the readable entries; None without a mirror."""
    if held is None or not held.heads:
        return None  # nobody knows what came after the last head that was shown
    own = state.opened.ledger_id if state.opened else ""
    others = [  # another ledger's is at no place of this one's chain
        each.head if each.ledger_id.hex() == own else replace(each.head, seq=0) for each in shown
    ]
    heads = [*held.heads[::-1], *others]  # of two alike, the mirror's newer
    return max(heads, key=lambda head: _missing(state, head))


def _kept(files: LedgerFiles) -> list[Evidence]:
    """Return why the ledger stopped, if the reason was recorded."""
    try:
        return list(evidence_in(files.stopped.read_text("utf-8").splitlines()))
    except (OSError, ValueError):
        return []


def _readable_part(files: LedgerFiles) -> tuple[LedgerState, bool]:
    """Fold the entries up to the first that is damaged; return whether there was none."""
    state = LedgerState()
    try:
        database = apsw.Connection(str(files.database), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            for line, chain_hash in database.execute("SELECT line, hash FROM entry ORDER BY seq"):
                # First: of an entry that was changed nothing counts, or it would be another's.
                if chain(state.head.chain_hash, line) != chain_hash:
                    return state, False
                apply_line(state, line)
            # Entries may be readable, out of the log, in a database that does not open any more.
            (check,) = next(iter(database.execute("PRAGMA integrity_check(1)")))
            body = "SELECT bytes FROM body WHERE seq = ?"
            check_bodies(state, lambda seq: database.execute(body, (seq,)).get)
        finally:
            database.close()
    except (apsw.Error, AttributeError, LedgerDamaged, TypeError, ValueError):  # of a row's values
        return state, False
    return state, check == "ok"
