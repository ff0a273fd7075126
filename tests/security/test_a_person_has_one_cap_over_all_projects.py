"""Ledgers of one organization charge the account of their people first, whatever ends a process."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.ledgers import MECHANISM, digest, key

from colonnade.cli.main import main
from colonnade.core.errors import (
    BadInput,
    BudgetExceeded,
    LedgerDamaged,
    LedgerRolledBack,
)
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.entries import canonical
from colonnade.ledger.export import export_lines, verify_export
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.people import account as account_module
from colonnade.ledger.people.joining import join_account
from colonnade.ledger.people.rules import JoinedPeople
from colonnade.ledger.recovery import recover_ledger
from colonnade.ledger.rules.fold import apply_line
from colonnade.ledger.state import LedgerState
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.privacy.accounting import rho_from_units
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.privacy.sampling import OsNoise

COST = MECHANISM.cost
PERSON = 5 * COST  # less than the caps of both tables together


class Organization:
    """Two tables about the same people, each with a ledger, and the account of the people."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.people = LedgerFiles(folder / "people")
        self.files = {name: LedgerFiles(folder / name) for name in ("one", "two")}
        create_ledger(self.people, LedgerConfig("people", {"": PERSON}))
        for name, files in self.files.items():
            create_ledger(files, LedgerConfig(name, {"": 4 * COST, MEMBERSHIP: 4 * COST}))

    def join(self, *names: str) -> None:
        for name in names or self.files:
            join_account(self.files[name], self.people, reason="one person", clock=lambda: 1.7e9)

    def open(self, name: str) -> Ledger:
        return open_ledger(self.files[name], clock=lambda: 1.7e9)

    def account(self) -> tuple[int, int]:
        """Return what the people's account has spent and set aside."""
        ledger = open_ledger(self.people)
        found = ledger.budget().spent, ledger.state.reserved.get("", 0)
        ledger.close()
        return found


@pytest.fixture
def here(tmp_path: Path) -> Organization:
    return Organization(tmp_path)


def release(ledger: Ledger, job: str, round_: int = 0, account: str = "") -> None:
    where = key(round_, job=job, account=account)
    Gate(ledger, OsNoise()).release(where, b"r", MECHANISM, lambda: np.zeros(2, np.int64))


@pytest.mark.slow
def test_the_sum_over_projects_stays_under_the_cap_of_a_person(here: Organization) -> None:
    here.join()
    one, two = here.open("one"), here.open("two")
    one.admit("a", units=3 * COST)
    assert here.account() == (0, 3 * COST)
    with pytest.raises(BudgetExceeded, match="projects"):
        two.admit("b", units=3 * COST)  # its own cap would allow it
    assert not two.state.left
    two.admit("b", units=2 * COST)
    release(one, "a")
    release(one, "a", 1)
    release(two, "b")
    assert here.account() == (3 * COST, 2 * COST)
    one.close_job("a")
    assert here.account() == (3 * COST, COST)  # what a job did not use is free again
    one.admit("c", units=COST)
    with pytest.raises(BudgetExceeded, match="projects"):
        one.admit("d", units=COST)


def test_a_retry_is_charged_once(here: Organization) -> None:
    here.join()
    one = here.open("one")
    one.admit("a", units=2 * COST)
    for _ in range(3):
        release(one, "a")
    assert (here.account(), one.budget().spent) == ((COST, COST), COST)


def test_clients_of_a_host_are_charged_once_with_what_any_may_lose(here: Organization) -> None:
    here.join()
    one = here.open("one")
    assert one.admit_many("a", ["c1", "c2", "c3"], units=2 * COST) == {}
    assert here.account() == (0, 2 * COST)
    for round_, name in enumerate(("c1", "c2", "c1", "c3")):
        release(one, "a", round_, account=name)
    assert here.account() == (2 * COST, 0)
    assert max(one.state.spent.values()) == 2 * COST


def test_a_job_that_never_began_gives_back_what_it_set_aside(here: Organization) -> None:
    here.join()
    one = here.open("one")
    one.admit("a", units=3 * COST)
    one.close_job("a")
    assert here.account() == (0, 0)
    two = here.open("two")
    two.admit("b", units=4 * COST)
    assert here.account() == (0, 4 * COST)


def test_what_was_spent_before_joining_counts(here: Organization) -> None:
    one = here.open("one")
    one.admit("a", units=2 * COST)
    release(one, "a")
    one.admit("m", units=COST, account=MEMBERSHIP)
    one.close()
    here.join("one")
    assert here.account() == (3 * COST, 0)
    one = here.open("one")
    release(one, "a", 1)  # was set aside, and counted, before
    assert here.account() == (3 * COST, 0)
    one.close()
    here.join("one")  # again: only the place is noted
    assert here.account() == (3 * COST, 0)


def test_a_client_admitted_after_the_joining_to_a_job_from_before_counts(
    here: Organization,
) -> None:
    one = here.open("one")
    one.admit("old", units=2 * COST, account="c2")
    for round_ in range(2):
        release(one, "old", round_, account="c2")
    one.close_job("old")
    one.admit("a", units=2 * COST, account="c1")
    one.close()
    here.join("one")
    assert here.account() == (2 * COST, 0)
    one = here.open("one")
    one.admit("a", units=2 * COST, account="c2")  # could not pay before, say
    for round_ in range(2):
        release(one, "a", round_, account="c2")
    release(one, "a", 2, account="c1")  # counted by the joining
    assert one.budget("c2").spent == 4 * COST
    one.close()
    assert here.account() == (4 * COST, 0)


def test_alignments_and_tables_count_together(here: Organization) -> None:
    here.join()
    one = here.open("one")
    one.admit("a", units=2 * COST, account=MEMBERSHIP)
    one.admit("a", units=3 * COST)
    with pytest.raises(BudgetExceeded, match="projects"):
        one.admit("b", units=COST)


def test_a_release_outside_an_admitted_job_is_refused(here: Organization) -> None:
    here.join()
    one = here.open("one")
    with pytest.raises(BudgetExceeded, match="first"):
        one.charge(key(), MECHANISM, request_sha256=digest(b"r"))
    assert one.budget().spent == 0


# -- what people see -----------------------------------------------------------------------------


@pytest.mark.slow
def test_it_is_shown_in_epsilon_with_rho_running_or_stopped(
    here: Organization, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, people = str(here.files["one"].folder), str(here.people.folder)
    assert main(["ledger", "join", folder, "--people", people, "--reason", "one person"]) == 0
    here.join("two")
    one, two = here.open("one"), here.open("two")
    two.admit("b", units=COST)
    release(two, "b")
    one.admit("a", units=2 * COST)
    capsys.readouterr()
    shown = []
    for running in (True, False):
        if not running:
            one.close()
        assert main(["ledger", "show", folder]) == 0
        shown.append(capsys.readouterr().out)
        assert main(["ledger", "show", folder, "--json"]) == 0
        scoped = {each["scope"]: each for each in json.loads(capsys.readouterr().out)["scoped"]}
    assert shown[0] == shown[1]
    (line,) = [each for each in shown[0].splitlines() if "over all projects" in each]
    assert re.fullmatch(r"  a person over all projects: left epsilon \S+ \(rho \S+\).*", line)
    rho = {name: scoped["person"][name]["rho"] for name in ("cap", "spent", "set_aside", "left")}
    assert rho["spent"] == pytest.approx(rho_from_units(COST))
    assert rho["set_aside"] == pytest.approx(rho_from_units(2 * COST))
    assert rho["left"] == pytest.approx(rho["cap"] - rho["spent"] - rho["set_aside"])


# -- a process that ends -----------------------------------------------------------------------


class Killed(BaseException):
    """Ends a process."""


def dying(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Have the next process end at ``step``."""
    real = account_module.PeopleAccount.__init__

    def planted(self: object, *arguments: object) -> None:
        def at(here: str) -> None:
            if here == step:
                raise Killed

        real(self, *arguments, at=at)  # type: ignore[arg-type]

    monkeypatch.setattr(account_module.PeopleAccount, "__init__", planted)


def kill_at(here: Organization, step: str, act: Callable[[Ledger], None]) -> None:
    """Do something in a process that is killed at ``step``, without closing a file by itself."""
    pid = os.fork()
    if pid == 0:
        patch = pytest.MonkeyPatch()
        dying(patch, step)
        patch.setattr(account_module, "Killed", Killed, raising=False)
        try:
            act(here.open("one"))
        except Killed:
            os._exit(9)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9


def test_a_kill_between_the_two_charges_counts_more_and_never_less(here: Organization) -> None:
    here.join()
    one = here.open("one")
    one.admit("a", units=2 * COST)
    one.close()
    kill_at(here, "charged", lambda ledger: release(ledger, "a"))
    assert here.account() == (COST, COST)  # charged first
    one = here.open("one")
    assert [paid.wasted for paid in one.state.people.paid.values()] == [True]
    assert one.budget().spent == 0
    release(one, "a")
    release(one, "a", 1)
    assert (here.account(), one.budget().spent) == ((3 * COST, 0), 2 * COST)


def test_a_kill_after_setting_aside_leaves_the_job_possible(here: Organization) -> None:
    here.join()
    kill_at(here, "reserved", lambda ledger: ledger.admit("a", units=2 * COST))
    assert here.account() == (0, 2 * COST)
    one = here.open("one")
    assert here.account() == (0, 0)  # nobody has that job
    one.admit("a", units=2 * COST)
    release(one, "a")
    assert here.account() == (COST, COST)


@pytest.mark.slow
def test_every_kill_leaves_at_least_what_was_released_in_the_account(here: Organization) -> None:
    # A life of three jobs, killed at every step of the account in turn and then gone on with.
    here.join()

    def live(ledger: Ledger) -> None:
        for job in ("a", "b", "c"):
            if job not in ledger.state.closed:
                ledger.admit(job, units=COST)
                release(ledger, job)
                ledger.close_job(job)

    for step in ("reserved", "charged", "charged"):
        kill_at(here, step, live)
        one = here.open("one")
        released = one.budget().spent
        one.close()
        assert here.account()[0] >= released
        unfinished = here.open("one")
        for job in list(unfinished.state.left):
            release(unfinished, job)
            unfinished.close_job(job)
        unfinished.close()
    one = here.open("one")
    live(one)
    assert one.budget().spent == 3 * COST
    assert here.account() == (5 * COST, 0)  # two were charged and never used


def test_two_processes_take_turns_and_lose_no_charge(here: Organization) -> None:
    here.join()
    children = []
    for name in here.files:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                ledger = here.open(name)
                ledger.admit(name, units=2 * COST)
                for round_ in range(2):
                    release(ledger, name, round_)
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    assert codes == [0, 0]
    assert here.account() == (4 * COST, 0)


# -- copies, restores and bypasses ----------------------------------------------------------------


def restore(files: LedgerFiles, backup: Path) -> None:
    shutil.rmtree(files.folder)
    shutil.copytree(backup, files.folder)


def test_a_restored_member_pays_again_or_stops(here: Organization) -> None:
    here.join()
    backup, files = here.folder / "backup", here.files["one"]
    one = here.open("one")
    one.admit("a", units=2 * COST)
    one.close()
    shutil.copytree(files.folder, backup)
    one = here.open("one")
    release(one, "a")
    one.close()
    restore(files, backup)  # at the very entry, which a crash might have left as well
    one = here.open("one")
    assert one.budget().spent == 0
    release(one, "a")
    assert here.account()[0] == 2 * COST  # it was charged again
    release(one, "a", 1)
    one.close()
    restore(files, backup)
    with pytest.raises(LedgerRolledBack, match="restored"):
        here.open("one")
    with pytest.raises(LedgerRolledBack):
        here.open("one")
    assert here.account()[0] == 3 * COST


def test_a_copy_that_runs_beside_stops_at_its_next_release(here: Organization) -> None:
    here.join()
    one = here.open("one")
    one.admit("a", units=3 * COST)
    one.close()
    copy = LedgerFiles(here.folder / "copy")
    shutil.copytree(here.files["one"].folder, copy.folder)
    one, two = here.open("one"), open_ledger(copy)
    release(one, "a")
    with pytest.raises(LedgerRolledBack, match="restored"):
        release(two, "a")
    assert here.account()[0] == COST


def test_a_restored_account_is_noticed_by_any_member_and_stops(here: Organization) -> None:
    here.join()
    one = here.open("one")
    one.admit("a", units=2 * COST)
    shutil.copytree(here.people.folder, here.folder / "backup")
    release(one, "a")
    one.close()
    restore(here.people, here.folder / "backup")
    with pytest.raises(LedgerRolledBack, match="restored"):
        here.open("one")
    with pytest.raises(LedgerRolledBack):
        here.open("two")


def test_another_account_or_none_cannot_take_its_place(here: Organization) -> None:
    here.join()
    other = LedgerFiles(here.folder / "other")
    create_ledger(other, LedgerConfig("people", {"": 100 * COST}))
    with pytest.raises(BadInput, match="another account"):
        join_account(here.files["one"], other, reason="more", clock=lambda: 1.7e9)
    here.files["one"].people.write_text(json.dumps({"folder": str(other.folder), "mirror": None}))
    with pytest.raises(LedgerDamaged, match="another account"):
        here.open("one")
    here.files["one"].people.unlink()
    with pytest.raises(LedgerDamaged, match="again"):
        here.open("one")


def test_an_export_without_the_signed_charge_does_not_verify(here: Organization) -> None:
    here.join()
    one = here.open("one")
    one.admit("a", units=COST)
    release(one, "a")
    lines = list(export_lines(one))
    verify_export(lines)
    places = [at for at, line in enumerate(lines) if '"type":"person"' in line]
    assert len(places) == 1
    state = LedgerState()
    for line in lines[: places[0]]:
        apply_line(state, line)
    charged = json.loads(lines[places[0] + 1]) | {"seq": state.next_seq}
    assert charged["type"] == "charged"
    with pytest.raises(LedgerDamaged, match="account"):
        apply_line(state, canonical(charged))
    for change in ({"units": 2 * COST}, {"kind": "membership"}, {"spent": 0}, {"wasted": True}):
        forged = json.loads(lines[places[0]]) | change
        with pytest.raises(LedgerDamaged):
            apply_line(state, canonical(forged))


@pytest.mark.slow
def test_a_recovered_member_stays_a_member(here: Organization) -> None:
    here.join()
    one = here.open("one")
    one.admit("a", units=2 * COST)
    release(one, "a")
    one._journal.storage.stop("a test")
    one.close()
    new = LedgerFiles(here.folder / "new")
    recover_ledger(here.files["one"], new)
    ledger = open_ledger(new)
    assert ledger.state.people.joined is not None
    assert here.account() == (COST, COST)  # what the old one held stays set aside
    ledger.set_cap(9 * COST, reason="after the recovery")
    with pytest.raises(BudgetExceeded, match="projects"):
        ledger.admit("b", units=4 * COST)
    ledger.admit("b", units=3 * COST)


@pytest.mark.parametrize("readable", [True, False])
def test_recovery_says_that_a_member_has_to_join_again_if_the_entry_is_lost(
    here: Organization, capsys: pytest.CaptureFixture[str], readable: bool
) -> None:
    here.join("one")
    here.open("one").close()  # what was in the log is in the database now
    old, new = here.files["one"], LedgerFiles(here.folder / "new")
    database = old.database.read_bytes()
    assert database.count(b'"type":"joined"') == 1
    if readable:  # what cannot be read is after it
        ledger = here.open("one")
        ledger.admit("job", units=COST)
        release(ledger, "job")
        ledger.close()
        database = old.database.read_bytes()
    lost = b"stored" if readable else b"joined"
    old.log.unlink(missing_ok=True)
    old.database.write_bytes(database.replace(b'"type":"' + lost, b'"type":"' + lost[::-1]))
    assert main(["ledger", "show", str(old.folder)]) == 5
    assert "see 'colonnade ledger recover'" in capsys.readouterr().err
    assert main(["ledger", "recover", str(old.folder), "--into", str(new.folder)]) == 0
    assert ("join it again with 'ledger join'" in capsys.readouterr().out) is not readable
    ledger = open_ledger(new)
    assert (ledger.state.people.joined is not None) is readable
    ledger.close()


def test_a_recovered_account_forgets_no_charge(here: Organization) -> None:
    here.join()
    one, two = here.open("one"), here.open("two")
    one.admit("a", units=2 * COST)
    two.admit("b", units=COST)
    release(one, "a")
    people = open_ledger(here.people)
    people.stop("a test")
    people.close()
    new = LedgerFiles(here.folder / "again")
    recover_ledger(here.people, new)
    one.close()
    two.close()
    here.people = new
    here.join()
    spent = here.account()[0]
    assert spent >= COST
    two = here.open("two")
    release(two, "b")  # was set aside in the old account, and is charged in the new one
    assert here.account()[0] == spent + COST


# -- planted bugs -------------------------------------------------------------------------------


def test_without_the_rule_a_member_could_spend_alone(
    here: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests above rest on this one rule of the fold and on the order of two calls.
    here.join()
    one = here.open("one")
    one.admit("a", units=COST)
    monkeypatch.setattr(account_module.PeopleAccount, "pay_for", lambda *_: {})
    with pytest.raises(ValueError, match="account"):
        release(one, "a")
    monkeypatch.setattr(JoinedPeople, "check_charge", lambda *_, **__: None)
    two = here.open("two")
    two.admit("b", units=COST)
    release(two, "b")
    assert here.account()[0] == 0  # so the rule is what holds


def test_what_a_job_keeps_for_its_evaluation_no_other_project_spends(here: Organization) -> None:
    here.join()
    one, two = here.open("one"), here.open("two")
    one.admit("fit", units=4 * COST)
    release(one, "fit")
    one.close_job("fit", keep=2 * COST)
    assert here.account() == (COST, 2 * COST)
    with pytest.raises(BudgetExceeded, match="projects"):
        two.admit("b", units=3 * COST)
    two.admit("b", units=2 * COST)
    with pytest.raises(BudgetExceeded, match="projects"):
        one.admit("evaluation", units=3 * COST, after="fit")
    assert one.state.kept  # what was refused used nothing
    one.admit("evaluation", units=2 * COST, after="fit")
    assert here.account() == (COST, 4 * COST)
    release(one, "evaluation")
    one.close_job("evaluation")
    assert here.account() == (2 * COST, 2 * COST)
    one.admit("again", units=COST)
    one.close_job("again", keep=COST)
    assert here.account() == (2 * COST, 3 * COST)
    one.close_job("again")  # no evaluation came
    assert here.account() == (2 * COST, 2 * COST)
