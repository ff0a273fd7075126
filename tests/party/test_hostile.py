"""A coordinator that means harm, against a party's vault: the cap holds and nothing is free."""

import asyncio
import hashlib
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.federation import (
    NAMES,
    UNITS,
    WAIT_S,
    coordinator,
    founded,
    make_job,
    party,
)
from support.ledgers import spending
from support.specs import OpenSpec
from support.vaults import ME, OTHER, ledger_of, refusal, vault_of

from colonnade.core.errors import (
    BadInput,
    BadMessage,
    BudgetExceeded,
    ColonnadeError,
    JobClosed,
    LedgerRolledBack,
    PolicyRefused,
    RequestConflict,
)
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.ledger import Ledger, Released
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.frank_wolfe.codec import FrankWolfeTask, task_to_bytes
from colonnade.methods.frank_wolfe.residual import (
    MAX_CLIP,
    MAX_COEF,
    MAX_Q,
    WEIGHT_UNIT,
    TaskParameters,
)
from colonnade.methods.job import Job, job_id
from colonnade.party.data.bounding.purchases import bounds_job
from colonnade.party.vault.vault import Vault
from colonnade.privacy.sampling import OsNoise
from colonnade.simulate.federation import FEDERATION
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import job_pb2, release_pb2
from colonnade.wire.codec import release_to_proto
from colonnade.wire.heads import head_to_proto
from colonnade.wire.jobspec import job_from_bytes, job_to_bytes

DIM, N_FEATURES, ROUNDS = 64, 3, 4
OPENING = task_to_bytes(FrankWolfeTask(None))


def spec_of(salt: int = 0, **changes: Any) -> tuple[Job, bytes, str]:
    job = make_job(founded(), [ME, OTHER], salt=salt, rounds=ROUNDS, **changes)
    spec = job_to_bytes(job)
    return job, spec, job_id(spec)


def step(draw: np.random.Generator | None = None, **changes: Any) -> bytes:
    """Return a task with any public numbers that the wire lets through."""
    draw = draw or np.random.default_rng(0)
    values: dict[str, Any] = {
        "coef": draw.integers(-MAX_COEF, MAX_COEF, N_FEATURES, endpoint=True),
        "q": draw.integers(-MAX_Q, MAX_Q, DIM, endpoint=True),
        "weight": int(draw.integers(0, WEIGHT_UNIT, endpoint=True)),
        "clip": int(draw.integers(1, MAX_CLIP, endpoint=True)),
        "offset": int(draw.integers(-MAX_COEF, MAX_COEF, endpoint=True)),
    }
    return task_to_bytes(FrankWolfeTask(TaskParameters(**values | changes)))


@pytest.fixture
def admitted() -> Iterator[tuple[Vault, Ledger, str]]:
    """Return a vault that has approved one job, and answered its opening."""
    job, spec, name = spec_of()
    ledger = ledger_of(2 * job.max_units(ME))
    vault = vault_of(ledger)
    assert vault.consider(spec).accepted
    vault.answer(name, 0, OPENING)
    yield vault, ledger, name
    ledger.close()


def test_a_task_of_a_job_that_was_not_approved_is_refused(
    admitted: tuple[Vault, Ledger, str],
) -> None:
    vault, ledger, _ = admitted
    _, spec, other = spec_of(1)
    for name in (other, "", "0" * 64, bounds_job(vault.version)):
        assert refusal(vault, ledger, name, 0, OPENING) is PolicyRefused
        assert refusal(vault, ledger, name, 1, step()) is PolicyRefused
    refused_spec = job_pb2.JobSpec.FromString(spec)
    refused_spec.members[0].features[0].name = "income"
    decision = vault.consider(refused_spec.SerializeToString())
    assert not decision.accepted
    assert refusal(vault, ledger, decision.job_id, 1, step()) is PolicyRefused


def test_a_task_under_a_used_key_is_answered_with_the_same_bytes_or_not_at_all(
    admitted: tuple[Vault, Ledger, str],
) -> None:
    vault, ledger, name = admitted
    first = vault.answer(name, 1, step())
    head = ledger.head
    for _ in range(200):
        assert vault.answer(name, 1, step()) == first
    assert ledger.head == head
    draw = np.random.default_rng(2)
    for _ in range(500):
        assert refusal(vault, ledger, name, 1, step(draw)) is RequestConflict
    # An equal task in other bytes is another task.
    padded = step() + b"\x12\x00"
    assert refusal(vault, ledger, name, 1, padded) is RequestConflict


def test_an_answer_is_bound_to_the_task_and_to_the_version_of_the_table(
    admitted: tuple[Vault, Ledger, str],
) -> None:
    vault, ledger, name = admitted
    vault.answer(name, 1, step())
    bound = step() + bytes.fromhex(vault.version)
    charged = ledger.state.charges[ReleaseKey(name, 1, "select")]
    assert charged.request_sha256 == hashlib.sha256(bound).hexdigest()


def test_rounds_that_the_job_does_not_have_are_refused(admitted: tuple[Vault, Ledger, str]) -> None:
    vault, ledger, name = admitted
    for round_ in (0, ROUNDS + 1, 2**31, 2**32 - 1):
        assert refusal(vault, ledger, name, round_, step()) is BadMessage
    for round_ in (1, ROUNDS):
        assert refusal(vault, ledger, name, round_, OPENING) is BadMessage


def test_a_round_before_the_opening_is_refused_and_costs_nothing() -> None:
    job, spec, name = spec_of()
    ledger = ledger_of(job.max_units(ME))
    vault = vault_of(ledger)
    assert vault.consider(spec).accepted
    for round_ in range(1, ROUNDS + 1):
        assert refusal(vault, ledger, name, round_, step()) is BadMessage
    vault.answer(name, 0, OPENING)
    for round_ in range(1, ROUNDS + 1):
        assert vault.answer(name, round_, step())


def test_rounds_in_any_order_cost_no_more_than_was_set_aside() -> None:
    answered = 0
    for seed in range(20):
        job, spec, name = spec_of(seed)
        ledger = ledger_of(10 * job.max_units(ME))
        vault = vault_of(ledger)
        assert vault.consider(spec).accepted
        vault.answer(name, 0, OPENING)
        draw = np.random.default_rng(seed)
        for round_ in draw.permutation(ROUNDS) + 1:
            try:
                vault.answer(name, int(round_), step(draw))
                answered += 1
            except BudgetExceeded:
                continue  # rounds in the wrong order may ask for more shares than were agreed
        assert ledger.budget().spent <= job.max_units(ME)
    assert answered > 20 * ROUNDS / 2  # refusing everything is no way to keep within a budget


def test_an_ended_job_is_never_answered_again(admitted: tuple[Vault, Ledger, str]) -> None:
    vault, ledger, name = admitted
    vault.answer(name, 1, step())
    vault.close_job(name)
    assert refusal(vault, ledger, name, 1, step()) is PolicyRefused
    decision = vault.consider(spec_of()[1])
    assert (decision.accepted, decision.code) == (False, JobClosed.code)
    assert refusal(vault, ledger, name, 2, step()) is PolicyRefused


def test_ending_anything_else_changes_nothing(admitted: tuple[Vault, Ledger, str]) -> None:
    vault, ledger, name = admitted
    purchase = bounds_job(vault.version)
    ledger.admit(purchase, units=UNITS)
    before = ledger.head
    for other in (purchase, "", name[:12], "0" * 64, bounds_job("")):
        vault.close_job(other)
    assert ledger.head == before
    assert purchase not in vault.hello().open_jobs
    assert list(vault.hello().open_jobs) == [name]


def test_jobs_are_admitted_until_the_cap_and_no_further() -> None:
    job, _, _ = spec_of()
    cap = 3 * job.max_units(ME) + job.max_units(ME) // 2
    ledger = ledger_of(cap)
    vault = vault_of(ledger)
    codes = []
    for salt in range(6):
        _, spec, name = spec_of(salt)
        decision = vault.consider(spec)
        codes.append(decision.code)
        if decision.accepted:
            vault.answer(name, 0, OPENING)
            for round_ in range(1, ROUNDS + 1):
                vault.answer(name, round_, step())
        assert ledger.budget().spent <= cap
    assert codes == ["", "", "", *["budget_exceeded"] * 3]
    # Ending a job frees what it did not spend, never what it did.
    spent = ledger.budget().spent
    for salt in range(6):
        vault.close_job(spec_of(salt)[2])
    assert ledger.budget().spent == spent


def test_each_limit_of_the_policy_refuses_and_charges_nothing(tmp_path: Path) -> None:
    text = (founded().folder / ME / "policy.toml").read_text()
    _, spec, name = spec_of()
    changes = {
        'features = ["*"]': 'features = ["x0"]',
        "label = true": "label = false",
        "max_rounds = 100000": f"max_rounds = {ROUNDS - 1}",
        "max_rho = 2.0": "max_rho = 0.0001",
        '"frank-wolfe", ': "",
        "max_rounds": "until = 2025-12-31\nmax_rounds",
    }
    for place, (old, new) in enumerate(changes.items()):
        assert old in text
        path = tmp_path / f"{place}.toml"
        path.write_text(text.replace(old, new, 1))
        ledger = ledger_of(UNITS * 1000)
        before = spending(ledger)
        vault = vault_of(ledger, policy=path)
        decision = vault.consider(spec)
        assert (decision.accepted, decision.code) == (False, "policy_refused"), new
        assert refusal(vault, ledger, name, 0, OPENING) is PolicyRefused
        assert spending(ledger) == before
    path.write_text("")
    with pytest.raises(PolicyRefused, match="nothing"):
        vault_of(ledger_of(1), policy=path)


@pytest.mark.parametrize(
    "change",
    ["population", "dataset", "feature", "label", "unknown", "party", "rounds"],
)
def test_a_specification_that_is_not_of_this_table_is_refused(change: str) -> None:
    opened = OpenSpec.of(spec_of()[1])
    message, method = opened.job, opened.method
    match change:
        case "population":
            message.population += 1
        case "dataset":
            message.members[0].dataset = "00" * 16
        case "feature":
            message.members[0].features[1].name = "income"
        case "label":
            message.label.name = "income"
        case "unknown":
            method.blocks[0].MergeFromString(b"\xa0\x3f\x01")
        case "party":
            message.members[0].party = "bank"
        case "rounds":
            method.rounds = 2**32 - 1
    ledger = ledger_of(UNITS * 1000)
    before = spending(ledger)
    vault = vault_of(ledger)
    decision = vault.consider(opened.to_bytes())
    assert (decision.accepted, decision.code) == (False, "bad_message")
    assert len(decision.message.splitlines()) == 1
    assert spending(ledger) == before


class Attack:
    """Sends whatever it likes to one vault and remembers every answer."""

    def __init__(self) -> None:
        job, _, _ = spec_of()
        self.cap = 2 * job.max_units(ME) + job.max_units(ME) // 3
        self.ledger = ledger_of(self.cap)
        self.vault = vault_of(self.ledger)
        self.approved: dict[str, int] = {}  # rounds by job
        self.bodies: dict[tuple[str, int, str], set[bytes]] = defaultdict(set)
        self.answers = self.tasks = 0

    def propose(self, spec: bytes) -> bool:
        decision = self.vault.consider(spec)
        if decision.accepted:
            self.approved[decision.job_id] = job_from_bytes(spec).rounds
        return decision.accepted

    def ask(self, name: str, round_: int, body: bytes) -> None:
        self.tasks += 1
        try:
            released = self.vault.answer(name, round_, body)
        except ColonnadeError:
            return
        self.answers += 1
        assert name in self.approved
        assert 0 <= round_ <= self.approved[name]
        for each in released:
            key = (each.key.job, each.key.round, each.key.kind)
            assert key[:2] == (name, round_)
            self.bodies[key].add(each.body)

    def assert_promises_hold(self) -> None:
        assert self.ledger.budget().spent <= self.cap
        assert all(len(bodies) == 1 for bodies in self.bodies.values())
        charges = self.ledger.state.charges
        assert self.ledger.budget().spent == sum(entry.units for entry in charges.values())
        assert {(key.job, key.round, key.kind) for key in charges} >= set(self.bodies)


def test_thousands_of_random_and_mutated_tasks_never_pass_the_cap() -> None:
    """Cap, one body for each key, and no answer outside an approved specification."""
    attack, draw = Attack(), np.random.default_rng(11)
    specs = [spec_of(salt)[1] for salt in range(8)]
    for spec in specs[:2]:
        assert attack.propose(spec)
    kept: list[tuple[str, int, bytes]] = []
    for turn in range(4000):
        spec = specs[int(draw.integers(len(specs)))]
        name = job_id(spec)
        round_ = int(draw.integers(0, ROUNDS + 3))
        match int(draw.integers(12)):
            case 0:
                attack.propose(spec)
            case 1:  # a mutated specification, and a task under its name
                broken = bytearray(spec)
                broken[int(draw.integers(len(spec)))] ^= 1 << int(draw.integers(8))
                if attack.propose(bytes(broken)):
                    specs.append(bytes(broken))
                attack.ask(job_id(bytes(broken)), round_, step(draw))
            case 2:
                attack.ask(name, round_, OPENING)
            case 3 | 4 if kept:  # a replay, under its own key or another
                old, at, body = kept[int(draw.integers(len(kept)))]
                attack.ask(old, at, body)
                attack.ask(name, round_, body)
            case 5 if kept:  # a mutation of what was asked before
                old, at, body = kept[int(draw.integers(len(kept)))]
                changed = bytearray(body or b"\0")
                changed[int(draw.integers(len(changed)))] ^= 1 << int(draw.integers(8))
                attack.ask(old, at, bytes(changed))
            case 6 if turn > 3000 and draw.random() < 0.1:
                attack.vault.close_job(name)
                attack.approved.pop(name, None)
            case 7:
                attack.ask(name, round_, draw.bytes(int(draw.integers(80))))
            case _:
                body = step(draw)
                kept.append((name, round_, body))
                attack.ask(name, round_, body)
    attack.assert_promises_hold()
    assert attack.tasks > 3000
    assert len(attack.bodies) >= 10  # it did get what was agreed
    assert attack.answers > 20  # and some of it many times


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1), st.binary(max_size=60), st.integers(0, 10**6))
def test_fuzzed_tasks_raise_nothing_but_refusals(round_: int, noise: bytes, place: int) -> None:
    attack = _fuzzed()
    body = step()
    at = place % len(body)
    name = next(iter(attack.approved))
    for task in (noise, body[:at] + noise, body[:at] + noise + body[at + len(noise) :]):
        attack.ask(name, round_ % (ROUNDS + 2), task)
    attack.assert_promises_hold()


_FUZZED: list[Attack] = []


def _fuzzed() -> Attack:
    if not _FUZZED:
        _FUZZED.append(Attack())
        _FUZZED[0].propose(spec_of()[1])
    return _FUZZED[0]


# -- rolled back ---------------------------------------------------------------------------------


def _answered(vault: Vault, salt: int) -> list[Released]:
    _, spec, name = spec_of(salt)
    assert vault.consider(spec).accepted
    return list(vault.answer(name, 0, OPENING))


def test_a_ledger_restored_from_a_copy_stops_when_it_is_shown_its_receipt(tmp_path: Path) -> None:
    files = LedgerFiles(tmp_path / "ledger", tmp_path / "head")
    create_ledger(files, LedgerConfig(ME, {"": UNITS * 1000}))
    ledger = open_ledger(files)
    _answered(vault_of(ledger, noise=OsNoise()), 0)
    ledger.close()
    shutil.copytree(files.folder, tmp_path / "copy")
    shutil.copy(files.mirror, tmp_path / "copy.head")
    ledger = open_ledger(files)
    latest = release_to_proto(_answered(vault_of(ledger, noise=OsNoise()), 1)[-1])
    ledger.close()
    shutil.rmtree(files.folder)
    shutil.copytree(tmp_path / "copy", files.folder)
    shutil.copy(tmp_path / "copy.head", files.mirror)
    ledger = open_ledger(files)  # the copy is whole in itself
    vault = vault_of(ledger, noise=OsNoise())
    with pytest.raises(LedgerRolledBack):
        vault.check_known(pb.Welcome(latest=latest))
    ledger.close()
    with pytest.raises(LedgerRolledBack):  # and a restart does not forget it
        open_ledger(files)


@pytest.mark.slow
def test_a_party_process_with_a_restored_ledger_ends_with_exit_code_5(tmp_path: Path) -> None:
    made, name = founded(), NAMES[2]
    home = tmp_path / name
    shutil.copytree(made.folder / name, home, ignore=shutil.ignore_patterns("ledger*"))
    create_ledger(LedgerFiles(home / "ledger"), LedgerConfig(name, {"": UNITS * 1000}))
    shutil.copytree(home / "ledger", tmp_path / "older")

    async def run() -> str:
        async with coordinator(made) as hub, party(made, ME, hub.address, tmp_path):
            config = home / "party.toml"
            config.write_text(config.read_text().replace("127.0.0.1:1", hub.address))
            command = [sys.executable, "-m", "colonnade.cli.main", "party", "run", "--config"]
            first = await asyncio.create_subprocess_exec(*command, str(config))
            await hub.attached(ME, name)
            submitted = await hub.submit(make_job(made, [ME, name], rounds=2))
            assert await hub.ended(submitted) == "finished"
            first.terminate()
            assert await asyncio.wait_for(first.wait(), WAIT_S) == 0
            shutil.rmtree(home / "ledger")
            shutil.copytree(tmp_path / "older", home / "ledger")
            done = await asyncio.to_thread(
                subprocess.run,
                [*command, str(config)],
                capture_output=True,
                text=True,
                timeout=WAIT_S,
            )
            assert done.returncode == 5
            return done.stderr

    said = asyncio.run(run())
    assert "colonnade: a head of entry" in said
    assert "Traceback" not in said


def test_a_receipt_of_another_ledger_is_refused_and_stops_nothing() -> None:
    ledger, other = ledger_of(UNITS * 100), ledger_of(UNITS * 100)
    foreign = release_to_proto(_answered(vault_of(other), 0)[0])
    vault = vault_of(ledger)
    head = head_to_proto(other.signed_head(FEDERATION))
    for shown in (
        pb.Welcome(latest=foreign),
        pb.Welcome(latest=release_pb2.Release()),
        pb.Welcome(head=head),
        pb.Welcome(head=pb.LedgerHead()),
    ):
        with pytest.raises(BadInput):
            vault.check_known(shown)
    _answered(vault, 0)
