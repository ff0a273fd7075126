"""A job for which the policy asks people waits for them: nothing is set aside, charged or sent.

The rules are the ledger's, so that they hold at every opening and in every export.
"""

import asyncio
import datetime as dt
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.federation import CAP, NAMES, coordinator, founded, make_job, party
from support.hosts import HUB, PARTY, ingest_rows, vertical_job
from support.ledgers import spending

from colonnade.cli.main import main
from colonnade.core.errors import (
    AwaitingApproval,
    BadInput,
    JobClosed,
    LedgerDamaged,
    VerificationFailed,
)
from colonnade.ledger.caps import signed_cap
from colonnade.ledger.create import LedgerConfig, create_ledger, memory_ledger, open_ledger
from colonnade.ledger.decisions import APPROVE, HOLD, REFUSE, Standing, signed_decision
from colonnade.ledger.entries import Admitted, CapSet, Charged, Entry, ReleaseKey
from colonnade.ledger.export import export_lines, verify_export
from colonnade.ledger.job_entries import ApproversSet, Decided, Proposed
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.lines import entry_from_line, line_of
from colonnade.ledger.receipts import key_to_pem, public_bytes
from colonnade.ledger.rules.fold import apply_line
from colonnade.ledger.state import LedgerState
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.job import job_id
from colonnade.party.data.dataset import Dataset, open_dataset
from colonnade.party.officer.inbox import DecisionFolder
from colonnade.party.policy import Allowance, Policy
from colonnade.party.vault.vault import Vault
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.privacy.mechanisms import DiscreteGaussian, record_of
from colonnade.privacy.simulation import ZeroNoise
from colonnade.server.store.sql import Database
from colonnade.wire.jobspec import job_to_bytes

ANA, BEN, EVE = (Ed25519PrivateKey.generate() for _ in range(3))
SPEC = b"a specification"
JOB = job_id(SPEC)
MONTH = "2026-11"


def a_ledger(*approvers: Ed25519PrivateKey, cap: int = 1000) -> Ledger:
    keys = tuple(map(public_bytes, approvers))
    config = LedgerConfig(PARTY, {"": cap}, approver_keys=keys, simulation=True)
    return memory_ledger(config, clock=lambda: 1.79e9)


def asked(needed: int = 1, *, units: int = 10, approve: str = "ask") -> Proposed:
    facts = (HUB.uri, "spiffe://study/operator/o", "a purpose", "a job", "moments", units)
    return Proposed(JOB, *facts, approve, needed, 0, len(SPEC))


def decision(
    ledger: Ledger,
    key: Ed25519PrivateKey,
    verdict: str = APPROVE,
    *,
    number: int = 0,
    reason: str = "because",
) -> Decided:
    name = public_bytes(key).hex()
    number = number or ledger.state.docket.next_number(JOB, name)
    return signed_decision(
        ledger.opened.ledger_id, JOB, verdict, reason=reason, number=number, key=key
    )


def waiting(*approvers: Ed25519PrivateKey, needed: int = 1) -> Ledger:
    ledger = a_ledger(*approvers)
    ledger.decisions.propose(asked(needed), SPEC)
    return ledger


def test_nothing_is_set_aside_before_enough_people_agreed() -> None:
    ledger = waiting(ANA, BEN, needed=2)
    before = spending(ledger)
    with pytest.raises(AwaitingApproval):
        ledger.admit(JOB, units=10)
    ledger.decisions.decide(decision(ledger, ANA))
    ledger.decisions.decide(decision(ledger, ANA))  # one person twice is one person
    with pytest.raises(AwaitingApproval):
        ledger.admit(JOB, units=10)
    assert spending(ledger) == before
    ledger.decisions.decide(decision(ledger, BEN))
    with pytest.raises(ValueError, match="higher price"):
        ledger.admit(JOB, units=11)
    ledger.admit(JOB, units=10)
    assert ledger.state.left[JOB] == {"": 10}


@pytest.mark.parametrize("account", ["", "a client"])
def test_nothing_is_charged_before_enough_people_agreed(account: str) -> None:
    ledger = waiting(ANA, BEN, needed=2)
    ledger.decisions.decide(decision(ledger, ANA))
    before, key = spending(ledger), ReleaseKey(JOB, 0, "share", account)
    cheap = DiscreteGaussian.within(10, l2_sensitivity2=1)  # the cap alone would allow it
    with pytest.raises(ValueError, match="admitted"):
        ledger.charge(key, cheap, request_sha256=JOB)
    assert spending(ledger) == before
    record = dict(record_of(cheap))
    assert_no_export_has(ledger, Charged(JOB, 0, "share", account, cheap.cost, record, JOB))


def test_a_hold_takes_an_agreement_back_and_a_refusal_is_final() -> None:
    ledger = waiting(ANA, BEN)
    for verdict, standing in ((APPROVE, "approved"), (HOLD, "held"), (APPROVE, "approved")):
        ledger.decisions.decide(decision(ledger, ANA, verdict))
        assert ledger.state.docket.standing(JOB) is Standing(standing)
    ledger.decisions.decide(decision(ledger, BEN, REFUSE))
    with pytest.raises(JobClosed):
        ledger.admit(JOB, units=10)
    with pytest.raises(BadInput):
        ledger.decisions.decide(decision(ledger, BEN))


def test_the_reason_that_is_told_is_of_a_decision_that_stands() -> None:
    ledger = waiting(ANA, BEN, needed=2)

    def told(approver: Ed25519PrivateKey, verdict: str, reason: str = "") -> str:
        ledger.decisions.decide(decision(ledger, approver, verdict, reason=reason))
        return ledger.state.docket.reason(JOB)

    assert told(ANA, HOLD, "which ward?") == "which ward?"
    assert told(BEN, HOLD, "which year?") == "which year?"
    assert told(BEN, APPROVE) == "which ward?"
    with pytest.raises(AwaitingApproval, match="which ward"):
        ledger.admit(JOB, units=10)
    assert told(ANA, APPROVE) == ""
    assert told(ANA, HOLD, "not yet") == "not yet"
    assert told(BEN, REFUSE, "no purpose") == "no purpose"


def test_who_is_no_approver_any_more_has_agreed_to_nothing() -> None:
    ledger = waiting(ANA, BEN)
    ledger.decisions.decide(decision(ledger, ANA))
    ledger.decisions.set_approvers([public_bytes(BEN)], reason="left", approvers=[BEN])
    with pytest.raises(AwaitingApproval):
        ledger.admit(JOB, units=10)
    with pytest.raises(BadInput, match="has 0"):
        ledger.decisions.set_approvers([public_bytes(EVE)], reason="mine", approvers=[EVE])


@pytest.mark.parametrize("how", ["proposal", "policy", "policy that asks fewer now"])
def test_one_of_two_approvers_cannot_replace_both(how: str) -> None:
    ledger = waiting(ANA, BEN, needed=2) if how == "proposal" else a_ledger(ANA, BEN)
    if how != "proposal":
        ledger.decisions.note_policy(b"two people", approvals=2)
    if how == "policy that asks fewer now":
        ledger.decisions.note_policy(b"one person", approvals=1)
    new = [public_bytes(EVE)]
    for signers in ([], [ANA], [ANA, ANA], [ANA, EVE], [BEN, EVE]):
        with pytest.raises(BadInput, match="not changed"):
            ledger.decisions.set_approvers(new, reason="mine", approvers=signers)
    assert {*ledger.state.docket.approvers} == {public_bytes(key).hex() for key in (ANA, BEN)}
    ledger.decisions.set_approvers(new, reason="ours", approvers=[BEN, ANA])
    assert {*ledger.state.docket.approvers} == {public_bytes(EVE).hex()}


@pytest.mark.parametrize("how", ["proposal", "policy", "policy that asks fewer now"])
@pytest.mark.parametrize("scope", ["", "purpose"])
def test_one_of_two_approvers_cannot_raise_a_cap(how: str, scope: str) -> None:
    ledger = waiting(ANA, BEN, needed=2) if how == "proposal" else a_ledger(ANA, BEN)
    ledger.set_cap(900, reason="a first one or a lower one takes nobody", scope=scope)
    if how != "proposal":
        ledger.set_cap(950, reason="nobody asks for two yet", scope=scope, approvers=[ANA])
        ledger.decisions.note_policy(b"two people", approvals=2)
    if how == "policy that asks fewer now":
        ledger.decisions.note_policy(b"one person", approvals=1)
    seq, ledger_id = ledger.state.next_seq, ledger.opened.ledger_id
    for signers in ([], [ANA], [ANA, ANA], [ANA, EVE], [BEN, EVE]):
        with pytest.raises(BadInput, match="enough"):
            ledger.set_cap(1100, reason="mine", scope=scope, approvers=signers)
        entry = CapSet(scope, "", 1100, "mine", "", "")
        forged = signed_cap(ledger_id, seq, entry, sign=ledger.sign, approvers=signers)
        assert_no_export_has(ledger, forged)
    ledger.set_cap(1100, reason="ours", scope=scope, approvers=[BEN, ANA])
    ledger.set_cap(1000, reason="less takes nobody", scope=scope)


def test_a_refusal_ends_a_job_that_runs_and_frees_what_it_had_set_aside() -> None:
    ledger = waiting(ANA)
    ledger.decisions.decide(decision(ledger, ANA))
    ledger.admit(JOB, units=10)
    with pytest.raises(BadInput, match="refused"):
        ledger.decisions.decide(decision(ledger, ANA, HOLD))
    ledger.decisions.decide(decision(ledger, ANA, REFUSE))
    assert not ledger.state.left
    assert ledger.state.reserved[""] == 0
    assert JOB in ledger.state.closed


FORGED: dict[str, Callable[[Ledger], Decided]] = {
    "a stranger's key": lambda ledger: decision(ledger, EVE),
    "another's name": lambda ledger: replace(
        decision(ledger, EVE), approver=public_bytes(ANA).hex()
    ),
    "another verdict": lambda ledger: replace(decision(ledger, ANA, HOLD), verdict=APPROVE),
    "another reason": lambda ledger: replace(decision(ledger, ANA), reason="other"),
    "another ledger": lambda _: decision(a_ledger(ANA), ANA, number=1),
    "a number of before": lambda ledger: decision(ledger, ANA, number=7),
    "no reason": lambda ledger: signed_decision(
        ledger.opened.ledger_id, JOB, REFUSE, reason=" ", number=1, key=ANA
    ),
    "another job": lambda ledger: signed_decision(
        ledger.opened.ledger_id, "0" * 64, APPROVE, reason="", number=1, key=ANA
    ),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_decision_counts_only_as_an_approver_signed_it(what: str) -> None:
    ledger = waiting(ANA)
    head, forged = ledger.head, FORGED[what](ledger)
    with pytest.raises(BadInput):
        ledger.decisions.decide(forged)
    assert ledger.head == head
    assert_no_export_has(ledger, forged)
    ledger.decisions.decide(decision(ledger, ANA))  # the ledger goes on


def test_a_decision_is_not_played_again_after_a_later_one() -> None:
    ledger = waiting(ANA)
    agreed = decision(ledger, ANA)
    assert ledger.decisions.decide(agreed)
    ledger.decisions.decide(decision(ledger, ANA, HOLD))
    assert not ledger.decisions.decide(agreed)  # it is there, and changes nothing
    assert ledger.state.docket.standing(JOB) is Standing.HELD
    assert_no_export_has(ledger, agreed)


def assert_no_export_has(ledger: Ledger, *entries: Entry) -> None:
    """Append entries as a party that lies would, under the ledger's own key; it must be noticed."""
    lines = [*ledger.lines()]
    for entry in entries:
        lines.append(line_of(entry, seq=len(lines) + 1, time=1))
    state = LedgerState()
    for line in lines[:-1]:
        apply_line(state, line)
    with pytest.raises(LedgerDamaged):
        apply_line(state, lines[-1])


def test_an_export_with_an_admission_that_nobody_agreed_to_does_not_verify() -> None:
    admitted = Admitted(JOB, "", 10, MONTH)
    assert_no_export_has(waiting(ANA), admitted)
    none = a_ledger(ANA)
    none.decisions.propose(asked(0, approve="none"), SPEC)
    assert_no_export_has(none, admitted)
    auto = a_ledger(ANA)
    auto.decisions.propose(asked(0, approve="auto"), SPEC)
    auto.admit(JOB, units=10)
    assert_no_export_has(auto, asked(1))  # proposed anew once it runs
    for wrong in (asked(0), asked(17), replace(asked(), spec_bytes=0), replace(asked(), policy=3)):
        assert_no_export_has(a_ledger(ANA), wrong)
    lone = ApproversSet([public_bytes(EVE).hex()], "mine", "00" * 64, [])
    assert_no_export_has(a_ledger(ANA), lone)
    lines = [*export_lines(auto)]
    verify_export(lines)
    lines[2] = lines[2].replace('"approve":"auto"', '"approve":"ask"')
    with pytest.raises(VerificationFailed):
        verify_export(lines)


# -- a party -------------------------------------------------------------------------------------


@dataclass
class Desk:
    """A party's vault that asks, its ledger, and the folder of decisions."""

    dataset: Dataset
    ledger: Ledger
    inbox: DecisionFolder

    def vault(self, needed: int = 1) -> Vault:
        rule = Allowance(HUB, ("frank-wolfe",), ("*",), True, MAX_UNITS, 1000)
        rule = replace(rule, approve="ask", approvals=needed)
        return Vault(
            self.dataset,
            self.ledger,
            ZeroNoise(),
            policy=Policy((rule,), text=b"[[allow]]"),
            coordinator=HUB,
            today=lambda: dt.date(2026, 1, 1),
            inbox=self.inbox,
        )

    def decide(self, job: str, verdict: str, key: Ed25519PrivateKey = ANA) -> None:
        number = self.ledger.state.docket.next_number(job, public_bytes(key).hex())
        ledger_id = self.ledger.opened.ledger_id
        self.inbox.put(
            signed_decision(ledger_id, job, verdict, reason="because", number=number, key=key)
        )


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    ingest_rows(tmp_path / "data")
    with open_dataset(tmp_path / "data") as dataset:
        inbox = DecisionFolder(tmp_path / "decisions")
        yield Desk(dataset, a_ledger(ANA, cap=MAX_UNITS), inbox)


def test_a_job_waits_held_and_is_taken_up_when_somebody_agrees_also_after_a_start(
    desk: Desk,
) -> None:
    spec = job_to_bytes(replace(vertical_job(desk.dataset), purpose="a study"))
    name, before, vault = job_id(spec), spending(desk.ledger), desk.vault()
    said = vault.consider(spec)
    assert (said.accepted, said.waiting, said.code) == (False, True, "awaiting_approval")
    assert vault.decided() == []
    desk.decide(name, HOLD)
    (said,) = vault.decided()
    assert said.waiting
    assert "because" in said.message
    assert spending(desk.ledger) == before
    vault = desk.vault()  # started again: the queue is the ledger's
    assert vault.hello().open_jobs == [name]
    desk.decide(name, APPROVE)
    (said,) = vault.decided()
    assert said.accepted
    assert desk.ledger.state.left[name]
    assert list(desk.inbox.path.iterdir()) == []
    desk.decide(name, REFUSE)
    (said,) = vault.decided()
    assert (said.accepted, said.waiting, said.code) == (False, False, "policy_refused")
    assert not desk.ledger.state.left


def test_a_job_that_is_withdrawn_waits_no_longer(desk: Desk) -> None:
    vault, spec = desk.vault(), job_to_bytes(vertical_job(desk.dataset))
    assert vault.consider(spec).waiting
    assert vault.close_job(job_id(spec))
    assert vault.hello().open_jobs == []
    desk.decide(job_id(spec), APPROVE)
    assert vault.decided() == []
    assert not desk.ledger.state.left


def test_a_policy_that_asks_more_people_than_the_ledger_names_does_not_start(desk: Desk) -> None:
    with pytest.raises(BadInput, match="approvers"):
        desk.vault(needed=2)


@pytest.mark.parametrize("content", [b"", b'{"job":1}', b"\xff", b"[" * 20000], ids=range(4))
def test_files_that_are_no_decisions_are_put_aside(desk: Desk, content: bytes) -> None:
    vault, spec = desk.vault(), job_to_bytes(vertical_job(desk.dataset))
    assert vault.consider(spec).waiting
    desk.inbox.path.mkdir()
    (desk.inbox.path / "x.decision").write_bytes(content)
    (desk.inbox.path / "y.decision").symlink_to("/dev/zero")
    assert vault.decided() == []
    assert {each.suffix for each in desk.inbox.path.iterdir()} == {".ignored"}


def test_what_the_policy_refuses_is_kept_with_its_reason(desk: Desk) -> None:
    vault, spec = desk.vault(), job_to_bytes(replace(vertical_job(desk.dataset), name="odd"))
    other = vertical_job(desk.dataset)
    member = replace(other.members[0], dataset="00" * 16)
    spec = job_to_bytes(replace(other, members=(member,)))
    assert vault.consider(spec).code == "bad_message"
    assert vault.consider(b"junk").code == "bad_message"
    assert desk.ledger.decisions.specification(job_id(spec)) == spec
    assert desk.ledger.decisions.specification(job_id(b"junk")) == b"junk"
    head = desk.ledger.head
    vault.consider(spec)  # again: the same is not noted twice
    assert desk.ledger.head == head
    kinds = [entry_from_line(line)[2].type for line in desk.ledger.lines()]
    assert kinds[2:] == ["policy", "proposed", "declined", "proposed", "declined"]


# -- over the wire -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_coordinator_says_for_whom_it_waits_and_everybody_may_start_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, (one, two) = founded(), NAMES[:2]
    policy = tmp_path / "policy.toml"
    text = (made.folder / one / "policy.toml").read_text()
    policy.write_text(text.replace("max_rounds =", 'approve = "ask"\nmax_rounds =', 1))
    files, key = LedgerFiles(tmp_path / "ledger"), tmp_path / "ana.pem"
    keys = (public_bytes(ANA),)
    create_ledger(files, LedgerConfig(one, {"": CAP}, approver_keys=keys, simulation=True))
    key.write_bytes(key_to_pem(ANA))
    config = tmp_path / "party.toml"
    config.write_text(
        f'coordinator = "127.0.0.1:1"\ncredentials = "{made.folder / one / "pki"}"\ndata = "d"\n'
        f'ledger = "{files.folder}"\npolicy = "{policy}"\n'
    )
    changes: dict[str, Any] = {
        "policy": policy,
        "ledger_folder": files.folder,
        "decisions": tmp_path / "decisions",
    }
    store = Database(f"sqlite:///{tmp_path}/hub.db")
    job = replace(make_job(made, (one, two)), purpose="a study")

    async def command(*words: str) -> str:
        await asyncio.to_thread(main, [*words, "--config", str(config), "--json"])
        return capsys.readouterr().out

    async def run() -> None:
        ledger = open_ledger(files)
        async with (
            coordinator(made, store=store) as hub,
            party(made, two, hub.address, tmp_path) as second,
        ):
            async with party(made, one, hub.address, tmp_path, ledger=ledger, **changes):
                await hub.attached(one, two)
                name = await hub.submit(job)
                engine = hub.serving.engine
                await hub.until(lambda: len(engine.runs[name].decisions) == 2)
                assert engine.runs[name].awaited() == [one]
                assert engine.runs[name].decisions[one].waiting
                shown = json.loads(await command("party", "jobs"))["jobs"][0]
                assert (shown["job"], shown["purpose"], shown["fits"]) == (name, "a study", True)
                held = ("party", "hold", name[:12], "--key", str(key), "--reason", "who are you?")
                await command(*held)
                await hub.until(lambda: "who are you?" in engine.runs[name].decisions[one].message)
            assert second.spent() == 0
            ledger.close()
            again = open_ledger(files)
            port = hub.serving.port
        async with (
            coordinator(made, store=store, port=port) as hub,
            party(made, one, hub.address, tmp_path, ledger=again, **changes),
            party(made, two, hub.address, tmp_path, ledger=second.ledger),
        ):
            await hub.attached(one, two)
            assert hub.serving.engine.runs[name].awaited() == [one]
            agreed = json.loads(await command("party", "approve", name[:12], "--key", str(key)))
            assert agreed["entry"] > 0
            assert await hub.ended(name) == "finished"
        again.close()

    asyncio.run(run())
    store.close()
