"""Whoever executes code inside net can ask, as a coordinator can, and do nothing else.

The code is planted in the process that `party run` starts, after it has given up what it can: the
shipped launcher, isolation, vault, ledger and noise are at the other end.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from support.federation import UNITS, founded, make_job
from support.hostile_net import LOOT, PLAN, planted
from support.vaults import ME, OTHER

from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.frank_wolfe.codec import FrankWolfeTask, task_to_bytes
from colonnade.methods.frank_wolfe.residual import MAX_COEF, MAX_Q, TaskParameters
from colonnade.methods.job import job_id
from colonnade.party.data.binding import OWNER_NAME
from colonnade.party.isolation.kernel import system_call
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.codec import release_from_proto
from colonnade.wire.jobspec import job_to_bytes

ROUNDS, WAIT_S = 4, 120.0
OPENING = task_to_bytes(FrankWolfeTask(None))
LANDLOCK = system_call(444, None, 0, 1)[1] == 0


def step(draw: np.random.Generator) -> bytes:
    coef = draw.integers(-MAX_COEF, MAX_COEF, 3, endpoint=True)
    q = draw.integers(-MAX_Q, MAX_Q, 64, endpoint=True)
    return task_to_bytes(FrankWolfeTask(TaskParameters(coef, q, weight=1, clip=1)))


def said(cap: int) -> list[pb.AttachResponse]:
    """Return all that the attacker says in a session: jobs for more than twice the cap."""
    draw = np.random.default_rng(5)
    jobs = [make_job(founded(), [ME, OTHER], salt=salt, rounds=ROUNDS) for salt in range(6)]
    specs = [job_to_bytes(job) for job in jobs]
    messages = [pb.AttachResponse(welcome=pb.Welcome(epoch=1, protocol=4))]
    for spec in specs:
        messages.append(pb.AttachResponse(proposal=pb.Proposal(spec=spec)))
        broken = bytearray(spec)
        broken[int(draw.integers(len(spec)))] ^= 1
        messages.append(pb.AttachResponse(proposal=pb.Proposal(spec=bytes(broken))))

    def ask(name: str, round_: int, body: bytes) -> None:
        messages.append(pb.AttachResponse(task=pb.Task(job_id=name, round=round_, body=body)))

    for name in [*map(job_id, specs), "0" * 64]:
        ask(name, 0, OPENING)
        for round_ in range(ROUNDS + 3):  # more than there are
            body = step(draw)
            for asked in (body, body, step(draw), body[: len(body) // 2]):
                ask(name, round_, asked)
    assert sum(job.max_units(ME) for job in jobs) > 2 * cap
    return messages


@pytest.mark.slow
def test_code_execution_in_net_spends_no_more_than_the_cap_reads_no_row_and_forges_no_receipt(
    tmp_path: Path,
) -> None:
    home, cap = tmp_path / ME, UNITS * 17  # of two jobs and a part of a third
    unowned = shutil.ignore_patterns("ledger*", OWNER_NAME)
    shutil.copytree(founded().folder / ME, home, ignore=unowned)
    with (home / "party.toml").open("a") as config:
        config.write("answer_grid_ms = 0\n")
    files = LedgerFiles(home / "ledger")
    create_ledger(files, LedgerConfig(ME, {"": cap}))
    private = [p for p in home.rglob("*") if p.is_file() and p.parent.name != "pki"]
    assert {p.parent.name for p in private} == {ME, "data", "ledger"}
    plan: dict[str, object] = {
        "files": [str(each) for each in private],
        "says": [each.SerializeToString().hex() for each in said(cap)],
    }
    command = [sys.executable, "-m", "colonnade.cli.main", "party", "run", "--config"]
    paths = [str(planted(tmp_path / "planted")), os.environ.get("PYTHONPATH", "")]
    party = subprocess.Popen(
        [*command, str(home / "party.toml")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stderr=subprocess.PIPE,
        text=True,
    )
    plan["vault"] = party.pid
    assert party.stderr is not None
    vaults_log = f"pipe:[{os.fstat(party.stderr.fileno()).st_ino}]"
    (home / "plan").write_text(json.dumps(plan))
    (home / "plan").rename(home / "pki" / PLAN)
    try:
        deadline = time.monotonic() + WAIT_S
        while not (home / "pki" / LOOT).exists() and party.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        party.terminate()
        _, log = party.communicate(timeout=WAIT_S)
        assert party.returncode == 0, log  # what net did has not ended the vault
    finally:
        party.kill()
    assert "net answered what was not asked" in log
    loot = json.loads((home / "pki" / LOOT).read_text())
    # Besides its standard streams it holds sockets and what waits for them: no file.
    assert all(
        each.startswith(("socket:", "anon_inode:", "pipe:", "/dev/null", "/proc/")) or not each
        for each in loot["open"]
    ), loot["open"]
    # Nor a stream that the vault writes its log on: what answers took is told there.
    assert vaults_log not in loot["open"]
    assert "net_isolated" in log  # what net itself says is passed on
    if LANDLOCK:
        assert loot["read"] == []
        assert loot["memory"] == []
    check_answers(files, [pb.AttachRequest.FromString(bytes.fromhex(s)) for s in loot["sent"]], cap)


def check_answers(files: LedgerFiles, sent: list[pb.AttachRequest], cap: int) -> None:
    ledger = open_ledger(files)
    try:
        key = bytes.fromhex(ledger.opened.public_key)
        bodies: dict[object, set[bytes]] = defaultdict(set)
        releases = [r for each in sent for r in each.submission.releases]
        for release in releases:
            found = release_from_proto(release)
            assert found.receipt.signed_by(key)
            bodies[found.key].add(found.body)
        charged = ledger.state.charges
        assert {len(each) for each in bodies.values()} == {1}  # retries replay
        assert set(bodies) <= set(charged)
        assert 0 < ledger.budget().spent <= cap
        assert ledger.budget().spent == sum(entry.units for entry in charged.values())
        accepted = {each.decision.job_id for each in sent if each.decision.accepted}
        assert 0 < len(accepted) < 6  # it was refused jobs that would have passed the cap
        assert {each.job for each in charged} <= accepted
        codes = {each.refusal.code for each in sent if each.HasField("refusal")}
        assert codes >= {"request_conflict", "policy_refused", "bad_message"}
        # A receipt is of its bytes: with others it verifies no more.
        changed = releases[0]
        changed.body = bytes([changed.body[0] ^ 1]) + changed.body[1:]
        assert not release_from_proto(changed).receipt.signed_by(key)
    finally:
        ledger.close()
