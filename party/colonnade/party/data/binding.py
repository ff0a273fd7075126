"""Which table a ledger pays for, and which ledger pays for a table.

Privacy: a cap belongs to people, and a ledger cannot see who they are. What it can hold is that its
spending goes on with the rows, and with the clients, that it began with, unless a person says in a
signed-for entry that others are about the same people; and that a table which one ledger has paid
for is not paid for by another as if it were new. The first is an entry of the ledger (`Bound`), the
second a file beside the table, written before the first charge.

What this does not notice: the same source ingested into a fresh folder, or a copy of a folder
without that file, under a ledger that was never used. Nothing there says who the people are. One
ledger for the same people is the organization's own duty.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from colonnade.core.errors import BadInput, NotBound
from colonnade.ledger.entries import Bound
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.storage.files import sync_path
from colonnade.party.data.clients import TableClients, check_accounts
from colonnade.party.data.dataset import Dataset
from colonnade.party.data.witness import check_witness, leave_witness

OWNER_NAME = "ledger.id"
FIRST_USE = "first use"
_LONGEST_REASON = 500
_UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class BoundRows:
    """What a ledger is bound to.

    Parameters
    ----------
    dataset
        The public name of the ingest; empty for a file that was read for one fit.
    folder
        Where the table lies, and the name of its ledger beside it; None for such a file.
    """

    digest: bytes
    dataset: str
    client_ids: str = ""
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Clients of a table beside those that a ledger knows. Facts about people: local only."""

    known: int
    new: int
    vanished: int

    @property
    def mostly_new(self) -> bool:
        """Whether more than half are new to a ledger that knows any."""
        return self.known + self.vanished > 0 and self.new > self.known


def rows_of(dataset: Dataset) -> BoundRows:
    """Return what a ledger is bound to by an opened table."""
    return BoundRows(dataset.digest, dataset.version, dataset.client_ids, dataset.folder)


def check_binding(rows: BoundRows, ledger: Ledger) -> None:
    """Refuse rows that the ledger was not used with, or that another ledger was used with."""
    check_accounts(ledger, divided=bool(rows.client_ids))
    if _other_owner(rows, ledger):
        raise NotBound(
            "this table was used with another ledger, which has paid for its people; use that one, "
            "or say why this one takes over: 'colonnade party bind'"
        )
    bound = ledger.state.bound
    if bound is not None and bound.table != ledger.seal(rows.digest):
        raise NotBound(
            "these are not the rows, the columns or the clients that the ledger was used with; if "
            "they are about the same people say so: 'colonnade party bind'"
        )


def claim(rows: BoundRows, ledger: Ledger) -> None:
    """Check the binding, and make it if neither side has one: before the first charge."""
    with ledger.lock:
        check_binding(rows, ledger)
        _check_past(rows, ledger)
        if rows.folder is not None:
            owner = _owner(rows.folder)
            # Again if nothing was charged yet: what is there may not have reached the disk.
            if owner != ledger.opened.ledger_id or ledger.state.bound is None:
                _write_owner(rows.folder, ledger.opened.ledger_id, replace=owner is not None)
                check_binding(rows, ledger)  # of two ledgers that came at once, one has it
        if ledger.state.bound is None:
            ledger.bind(_entry(rows, ledger, reason=FIRST_USE))
        note_use(rows, ledger)


def claim_folder(folder: Path, ledger: Ledger) -> None:
    """Refuse a folder that another ledger paid for; note beside it that this one does.

    Privacy: alignments are paid for before there is a table, from the account of membership. A
    second ledger of the same folder would have that account again.
    """
    if not folder.is_dir() or _owner(folder) is None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_owner(folder, ledger.opened.ledger_id, replace=False)
    if _owner(folder) not in (ledger.opened.ledger_id, *ledger.opened.continues):
        raise NotBound(
            f"{folder}: another ledger has paid for alignments of these people; use that one, or "
            "move the folder away if the people are others"
        )


def bind(
    rows: BoundRows,
    ledger: Ledger,
    *,
    reason: str,
    clients: TableClients | None = None,
    force: bool = False,
) -> Comparison | None:
    """Bind the ledger to other rows about the same people; return how its clients compare.

    Refused, unless forced, if most clients are new, at once or little by little since the ledger
    began or was last forced, or if the rule for their ids is another one: then their ids may be
    written differently, and each would have a second budget.
    """
    _check_reason(reason)
    with ledger.lock:
        check_accounts(ledger, divided=bool(rows.client_ids))
        _check_past(rows, ledger)
        found = None if clients is None else compare(clients, ledger)
        objection = _objection(rows, ledger, clients, found)
        if objection is not None and not force:
            raise NotBound(objection)
        # The entry first: a table is not taken from a ledger before it is written by which one.
        ledger.bind(_entry(rows, ledger, reason=reason, forced=objection is not None))
        if rows.folder is not None:
            _write_owner(rows.folder, ledger.opened.ledger_id, replace=True)
    return found


def note_use(rows: BoundRows, ledger: Ledger) -> None:
    """Leave beside the table where the ledger ends, so that a copy of the ledger is noticed."""
    # Not that of a ledger that was refused: the owner's is there.
    if rows.folder is not None and _owner(rows.folder) == ledger.opened.ledger_id:
        leave_witness(rows.folder, ledger)


def _check_past(rows: BoundRows, ledger: Ledger) -> None:
    if rows.folder is not None:
        check_witness(rows.folder, ledger)


def compare(clients: TableClients, ledger: Ledger) -> Comparison:
    """Return how many clients have an account, have none, and have one but no rows."""
    here, before = clients.accounts(ledger), ledger.state.accounts()
    known = sum(account in before for account in here)  # no two clients have one account
    return Comparison(known, len(here) - known, len(before) - known)


def _objection(
    rows: BoundRows, ledger: Ledger, clients: TableClients | None, found: Comparison | None
) -> str | None:
    """Return why the clients may be the same under other names, or None."""
    bound = ledger.state.bound
    if found is not None and found.mostly_new:
        return (
            f"{found.new} of {found.new + found.known} clients are new to the ledger and "
            f"{found.vanished} have vanished: their ids may be written differently; compare the "
            "client column with the last extract"
        )
    here = () if clients is None else clients.accounts(ledger)
    confirmed = ledger.state.confirmed()
    # Those who came and have gone count too: in turn, each client could have had another name.
    unconfirmed = (ledger.state.accounts() | {*here}) - confirmed if confirmed else ()
    if here and 2 * len(unconfirmed) > len(here):
        return (
            f"{len(unconfirmed)} clients, beside {len(here)} in this extract, came with earlier "
            "extracts, a part each time, or with this one: their ids may be written differently; "
            "compare the client column with the first extract"
        )
    if bound is not None and bound.client_ids != rows.client_ids and ledger.state.accounts():
        return (
            f"the ids of clients were compared by the rule {bound.client_ids!r}, and are now by "
            f"{rows.client_ids!r}; restore it in the schema"
        )
    return None


def _entry(rows: BoundRows, ledger: Ledger, *, reason: str, forced: bool = False) -> Bound:
    return Bound(
        dataset=rows.dataset,
        table=ledger.seal(rows.digest),
        client_ids=rows.client_ids,
        other_ledger=_other_owner(rows, ledger),
        forced=forced,
        reason=reason,
    )


def _check_reason(reason: str) -> None:
    if not reason.strip() or not reason.isprintable() or len(reason) > _LONGEST_REASON:
        raise BadInput(f"a reason has 1 to {_LONGEST_REASON} printable characters; say why")


def _other_owner(rows: BoundRows, ledger: Ledger) -> str:
    """Return the ledger that the table was used with, if it is neither this nor its forerunner."""
    owner = None if rows.folder is None else _owner(rows.folder)
    own = (ledger.opened.ledger_id, *ledger.opened.continues)
    return "" if owner is None or owner in own else owner


def _owner(folder: Path) -> str | None:
    """Return the ledger that a table was used with; a file that cannot be read names no own one."""
    try:
        owner = (folder / OWNER_NAME).read_bytes().decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError:
        return _UNREADABLE
    return _UNREADABLE if len(owner) != 32 or owner.strip("0123456789abcdef") else owner


def _write_owner(folder: Path, ledger_id: str, *, replace: bool) -> None:
    """Write which ledger pays for the table, durably; leave another's name unless ``replace``."""
    draft = folder / f".{OWNER_NAME}.{os.getpid()}"
    try:
        draft.unlink(missing_ok=True)
        private = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(private, "w", encoding="ascii") as file:
            file.write(f"{ledger_id}\n")
            file.flush()
            os.fsync(file.fileno())
        if replace:
            draft.rename(folder / OWNER_NAME)
        else:
            with suppress(FileExistsError):
                (folder / OWNER_NAME).hardlink_to(draft)
            draft.unlink()
        sync_path(folder)
    except OSError as error:
        raise BadInput(
            f"{folder}: cannot note which ledger pays for the table: {error.strerror}; it must be "
            "writable at first use"
        ) from None
