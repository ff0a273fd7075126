"""A head is taken from the ledger that signed it, and never before one that was told."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.desk import Desk, job_of
from support.ledgers import MECHANISM, digest, key
from support.vaults import ledger_of, vault_of

from colonnade.core.errors import BadInput, LedgerBehind, LedgerFailed, LedgerRolledBack
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.recovery import recover_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.privacy.accounting import units_down
from colonnade.server.engine.heads import show_known
from colonnade.server.engine.intake import enrolled, with_newest
from colonnade.server.store.base import PartyRow
from colonnade.simulate.federation import FEDERATION
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.codec import release_to_proto
from colonnade.wire.heads import head_to_proto
from colonnade.wire.session import enrolment_statement

CAP, COST = units_down(1.0), MECHANISM.cost


def spend(ledger: Ledger) -> None:
    ledger.charge(key(), MECHANISM, request_sha256=digest(b"r"))
    ledger.store(key(), b"body")


def changed(head: pb.LedgerHead, **changes: Any) -> pb.LedgerHead:
    other = pb.LedgerHead()
    other.CopyFrom(head)
    for name, value in changes.items():
        setattr(other, name, value)
    return other


@pytest.fixture
def desk() -> Desk:
    return Desk("hospital", "lab")


def test_a_head_that_its_ledger_did_not_sign_is_refused(desk: Desk) -> None:
    lab, hospital = desk.sides["lab"].ledger, desk.sides["hospital"].ledger
    mine = head_to_proto(lab.signed_head("study"))
    wrong = [
        pb.LedgerHead(),
        head_to_proto(lab.signed_head("another federation")),
        head_to_proto(hospital.signed_head("study")),
        *(changed(mine, **{name: 7}) for name in ("seq", "cap_units", "highest_units")),
        *(
            changed(mine, **{name: b"\1" * 16})
            for name in ("ledger_id", "spent_units", "signature")
        ),
        changed(mine, chain_hash=bytes(32)),
    ]
    for head in wrong:
        hello = desk.sides["lab"].hello(head=head)
        desk.refused(BadInput, "head", desk.engine.attach, "lab", hello)
    desk.attach("lab")


def test_a_head_before_the_newest_receipt_is_refused_after_a_restart_too(desk: Desk) -> None:
    before = desk.sides["lab"].hello()
    desk.run(job_of("hospital", "lab"))
    desk.start()
    desk.refused(LedgerBehind, "was told before", desk.engine.attach, "lab", before)


def test_another_hash_at_the_same_place_is_refused(desk: Desk) -> None:
    desk.attach("lab")
    desk.sides["lab"].ledger.state.hashes[-1] = bytes(32)
    hello = desk.sides["lab"].hello()
    desk.refused(LedgerBehind, "differs at entry", desk.engine.attach, "lab", hello)


def enrolled_anew(row: PartyRow | None, ledger: Ledger) -> PartyRow | None:
    ledger_id = bytes.fromhex(ledger.opened.ledger_id)
    before = [bytes.fromhex(each) for each in ledger.opened.continues]
    request = pb.EnrolRequest(
        ledger_id=ledger_id,
        continues=before,
        ledger_key=bytes.fromhex(ledger.opened.public_key),
        signature=ledger.sign(enrolment_statement("study", "hospital", ledger_id, before)),
    )
    return enrolled(row, request, federation="study", party="hospital")


def with_releases(row: PartyRow | None, ledger: Ledger, job: str, rounds: int) -> PartyRow:
    assert row is not None
    for name in (key(round_, job=job) for round_ in range(rounds)):
        ledger.charge(name, MECHANISM, request_sha256=digest(b"r"))
        ledger.store(name, b"body")
        kept = ledger.stored(name)
        assert kept is not None
        row = with_newest(row, [release_to_proto(kept)])
    return row


def test_of_a_recovered_ledger_the_newest_release_is_held_from_its_first_one_on(
    tmp_path: Path,
) -> None:
    """Else nothing would be shown to it until it is as long as the one before it was."""
    old, new = LedgerFiles(tmp_path / "old"), LedgerFiles(tmp_path / "new")
    create_ledger(old, LedgerConfig("hospital", {"": CAP}))
    ledger = open_ledger(old)
    row = with_releases(enrolled_anew(None, ledger), ledger, "job", 6)
    ledger.close()
    old.stopped.touch()
    recover_ledger(old, new)
    ledger = open_ledger(new)
    row = with_releases(enrolled_anew(row, ledger), ledger, "another", 1)
    shown = pb.Welcome()
    show_known(row, shown)
    ledger.close()
    assert shown.latest.receipt.ledger_id == row.ledger_id == bytes.fromhex(ledger.opened.ledger_id)


def test_a_longer_chain_that_spent_less_is_refused(desk: Desk) -> None:
    ledger = desk.sides["lab"].ledger
    spend(ledger)
    desk.attach("lab")
    ledger.admit("job", units=5)
    ledger.state.total -= 1
    desk.refused(
        LedgerBehind, "ends at entry", desk.engine.attach, "lab", desk.sides["lab"].hello()
    )


def test_a_standing_that_goes_back_ends_the_session(desk: Desk) -> None:
    ledger = desk.sides["lab"].ledger
    head = head_to_proto(ledger.signed_head("study"))
    spend(ledger)
    desk.attach("lab")
    standing = pb.Standing(head=head, cap_units=CAP)
    message = pb.AttachRequest(epoch=desk.epochs["lab"], standing=standing)
    desk.refused(LedgerBehind, "was told before", desk.engine.receive, "lab", message)


def test_heads_that_no_ledger_of_this_key_signed_stop_nothing() -> None:
    ledger, other = ledger_of(CAP), ledger_of(CAP)
    vault = vault_of(ledger)
    mine = head_to_proto(ledger.signed_head(FEDERATION))
    lies = [
        head_to_proto(other.signed_head(FEDERATION)),
        head_to_proto(ledger.signed_head("another federation")),
        changed(mine, seq=99),
        changed(mine, signature=bytes(64)),
        changed(mine, chain_hash=b""),
    ]
    for head in lies:
        with pytest.raises(BadInput):
            vault.check_known(pb.Welcome(head=head))
    spend(ledger)
    vault.check_known(pb.Welcome(head=mine))  # its own past is no news
    assert ledger.budget().spent == COST


def test_a_signed_head_that_is_not_on_the_chain_stops_for_good() -> None:
    ledger = ledger_of(CAP)
    told = ledger.signed_head(FEDERATION)
    twin = replace(told, seq=told.seq + 5, signature=b"")
    twin = replace(twin, signature=ledger.sign(twin.statement()))
    with pytest.raises(LedgerRolledBack):
        vault_of(ledger).check_known(pb.Welcome(head=head_to_proto(twin)))
    with pytest.raises(LedgerFailed):
        spend(ledger)
