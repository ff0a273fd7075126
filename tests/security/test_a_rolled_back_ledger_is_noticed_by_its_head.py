"""A ledger restored from a backup, or run as two copies, is noticed by the head that it told.

Local fits leave no release with a coordinator, so these tests spend without one.
"""

import shutil
from pathlib import Path

import pytest
from support.ledgers import MECHANISM, digest, key
from support.vaults import vault_of

from colonnade.core.errors import LedgerBehind, LedgerRolledBack, NotEnrolled
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.recovery import recover_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.party.vault.vault import Vault
from colonnade.privacy.accounting import units_down
from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.store.sql import Database
from colonnade.simulate.federation import FEDERATION
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.session import PROTOCOL

CAP, COST = units_down(1.0), MECHANISM.cost
PARTY = "hospital"


def spend(ledger: Ledger, *rounds: int, job: str = "dataset-fit-a") -> None:
    """Release as a local fit does: no coordinator is told."""
    for round_ in rounds:
        ledger.charge(key(round_, job=job), MECHANISM, request_sha256=digest(b"r"))
        ledger.store(key(round_, job=job), b"body")


class Place:
    """A party's ledger folder, whose backups are restored, and an honest coordinator."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, LedgerFiles(folder / "ledger")
        create_ledger(self.files, LedgerConfig(PARTY, {"": CAP}, simulation=True))
        self.engine = Coordinator(Database("sqlite://"), FEDERATION)

    def backup(self) -> None:
        shutil.copytree(self.files.folder, self.folder / "backup")

    def restore(self) -> None:
        shutil.rmtree(self.files.folder)
        shutil.copytree(self.folder / "backup", self.files.folder)

    def use(self, *rounds: int, files: LedgerFiles | None = None) -> None:
        ledger = open_ledger(files or self.files)
        spend(ledger, *rounds)
        ledger.close()

    def attach(self, files: LedgerFiles | None = None) -> int:
        """Enrol and attach as a session does; return what is left."""
        ledger = open_ledger(files or self.files)
        try:
            vault = vault_of(ledger)
            vault.check_known(self.engine.enrol(PARTY, vault.enrolment()))
            vault.check_known(self.hello(vault))
            return ledger.budget().remaining
        finally:
            ledger.close()

    def hello(self, vault: Vault) -> pb.Welcome:
        hello = vault.hello()
        hello.protocol = PROTOCOL
        self.engine.attach(PARTY, hello)
        sent, _ = self.engine.take()
        return next(each.message.welcome for each in sent if each.message.HasField("welcome"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_backup_restored_after_local_fits_is_refused_and_stops_for_good(place: Place) -> None:
    place.attach()
    place.backup()
    place.use(*range(20))
    place.attach()
    place.restore()
    with pytest.raises(LedgerRolledBack):
        place.attach()
    with pytest.raises(LedgerRolledBack):  # a restart does not forget it
        open_ledger(place.files)


def test_a_party_that_ignores_what_it_is_shown_is_refused(place: Place) -> None:
    place.backup()
    place.use(0, 1)
    place.attach()
    place.restore()
    ledger = open_ledger(place.files)
    vault, epoch = vault_of(ledger), place.engine.parties[PARTY].epoch
    with pytest.raises(LedgerBehind) as refused:
        place.hello(vault)
    assert refused.value.code == "ledger_behind"
    assert place.engine.parties[PARTY].epoch == epoch
    ledger.close()


def test_of_two_copies_that_both_go_on_the_second_to_attach_stops(place: Place) -> None:
    place.backup()
    place.use(0)
    place.attach()
    place.restore()
    place.use(1, 2, 3)  # beyond the head that was told, on another chain
    with pytest.raises(LedgerRolledBack):
        place.attach()


def test_a_welcome_tells_of_a_copy_that_attached_after_the_enrolment(place: Place) -> None:
    place.backup()
    place.use(1, 2, 3)
    ledger = open_ledger(place.files)
    vault = vault_of(ledger)
    vault.check_known(place.engine.enrol(PARTY, vault.enrolment()))
    copy = LedgerFiles(place.folder / "backup")
    place.use(0, files=copy)
    place.attach(copy)
    with pytest.raises(LedgerRolledBack):
        vault.check_known(place.hello(vault))
    ledger.close()


def test_a_coordinator_restored_from_a_backup_is_no_reason_to_stop(place: Place) -> None:
    place.attach()
    older = place.engine.parties[PARTY]
    place.use(0, 1)
    place.attach()
    place.engine.parties.put(older)
    assert place.attach() == CAP - 2 * COST
    place.engine = Coordinator(Database("sqlite://"), FEDERATION)  # and one that forgot everything
    assert place.attach() == CAP - 2 * COST


# -- recovery ------------------------------------------------------------------------------------


def rolled_back(place: Place, rounds: int) -> None:
    place.attach()
    place.backup()
    place.use(*range(rounds))
    place.attach()
    place.restore()


def test_a_recovery_adopts_what_the_head_shows_and_goes_on(place: Place) -> None:
    rolled_back(place, 20)
    with pytest.raises(LedgerRolledBack):
        place.attach()
    new = LedgerFiles(place.folder / "new")
    recover_ledger(place.files, new)  # what stopped the ledger is in its folder
    left = place.attach(new)
    assert left <= CAP - 20 * COST
    assert place.attach(new) == left  # from now on this one is the party's
    ledger = open_ledger(new)
    assert place.engine.parties[PARTY].ledger_id.hex() == ledger.opened.ledger_id
    ledger.close()


def test_a_recovery_that_was_not_told_of_the_head_stops_when_it_is_shown(place: Place) -> None:
    rolled_back(place, 20)
    place.files.stopped.touch()  # by hand, before anyone showed anything
    new, newer = LedgerFiles(place.folder / "new"), LedgerFiles(place.folder / "newer")
    recover_ledger(place.files, new)
    with pytest.raises(LedgerRolledBack):
        place.attach(new)
    recover_ledger(new, newer)
    assert place.attach(newer) <= CAP - 20 * COST


def test_the_ledger_that_was_replaced_is_not_taken_back(place: Place) -> None:
    place.attach()
    place.backup()
    place.files.stopped.touch()
    new = LedgerFiles(place.folder / "new")
    recover_ledger(place.files, new)
    place.attach(new)
    replaced = open_ledger(LedgerFiles(place.folder / "backup"))
    vault = vault_of(replaced)
    shown = place.engine.enrol(PARTY, vault.enrolment())
    with pytest.raises(NotEnrolled):
        place.hello(vault)
    with pytest.raises(LedgerRolledBack):
        vault.check_known(shown)
    replaced.close()


def test_a_second_recovery_of_the_same_ledger_is_not_taken(place: Place) -> None:
    place.attach()
    place.backup()
    for folder, into in (("ledger", "new"), ("backup", "twin")):
        old = LedgerFiles(place.folder / folder)
        old.stopped.touch()
        recover_ledger(old, LedgerFiles(place.folder / into))
    place.attach(LedgerFiles(place.folder / "new"))
    with pytest.raises(LedgerRolledBack):
        place.attach(LedgerFiles(place.folder / "twin"))
