"""The bundle of evidence: all that was asked and decided, in one file that nobody can edit."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.ledgers import MECHANISM, digest, key

from colonnade.cli.main import main
from colonnade.core.errors import EXIT_CHECK_FAILED, EXIT_OK, LedgerDamaged, VerificationFailed
from colonnade.ledger.bundle import Attached, bundle_lines, head_line
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.decisions import REFUSE, signed_decision
from colonnade.ledger.export import verify_lines
from colonnade.ledger.job_entries import Declined, Proposed
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.receipts import ledger_key_from_file, public_bytes
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.ledger.storage.snapshot import read_snapshot
from colonnade.methods.job import job_id

ANA = Ed25519PrivateKey.generate()
EVIL = "<script>alert(1)</script>"
LOG = [{"time": 1, "job": "j", "round": 0, "kind": "gram", "payload_bytes": 7}]
Lines = list[str]


def asked(spec: bytes, approve: str, needed: int = 0, *, name: str = "a job") -> Proposed:
    facts = ("hub", "ana", "a study", name, "moments", 10 * MECHANISM.cost)
    return Proposed(job_id(spec), *facts, approve, needed, 1, len(spec))


@pytest.fixture
def files(tmp_path: Path) -> LedgerFiles:
    """Make a ledger with a job that ran, one that a person refused, and one that was declined."""
    found = LedgerFiles(tmp_path / "ledger")
    keys = (public_bytes(ANA),)
    create_ledger(found, LedgerConfig("p", {"": 100 * MECHANISM.cost}, approver_keys=keys))
    ledger = open_ledger(found)
    ledger.decisions.note_policy(b"[[allow]]")
    ledger.decisions.propose(asked(b"ran", "auto"), b"ran")
    ledger.admit(job_id(b"ran"), units=2 * MECHANISM.cost)
    for round_ in (0, 1):
        at = key(round_, job=job_id(b"ran"))
        ledger.charge(at, MECHANISM, request_sha256=digest(b"r"))
        ledger.store(at, b"noisy")
    ledger.decisions.propose(asked(b"waits", "ask", 1, name=EVIL), b"waits")
    refuse(ledger)
    ledger.decisions.propose(asked(b"odd", "none"), b"odd")
    ledger.decisions.decline(Declined(job_id(b"odd"), "bad_message", "no use"))
    ledger.close()
    return found


def refuse(ledger: Ledger) -> None:
    job, ledger_id = job_id(b"waits"), ledger.opened.ledger_id
    entry = signed_decision(ledger_id, job, REFUSE, reason=EVIL, number=1, key=ANA)
    ledger.decisions.decide(entry)


def bundle(files: LedgerFiles) -> Lines:
    return list(bundle_lines(read_snapshot(files), ledger_key_from_file(files.key), LOG))


def place(lines: Lines, kind: str) -> int:
    return next(at for at, line in enumerate(lines) if json.loads(line)["type"] == kind)


def without(kind: str) -> Callable[[Lines], Lines]:
    return lambda lines: [line for at, line in enumerate(lines) if at != place(lines, kind)]


def changed(kind: str, old: str, new: str) -> Callable[[Lines], Lines]:
    def change(lines: Lines) -> Lines:
        at = place(lines, kind)
        assert old in lines[at]
        return [*lines[:at], lines[at].replace(old, new), *lines[at + 1 :]]

    return change


CHANGES: dict[str, Callable[[Lines], Lines]] = {
    "a specification left out": without("specification"),
    "a policy left out": without("policy-text"),
    "a line of what left, left out": without("left"),
    "a receipt left out": without("receipt"),
    "a decision left out": without("decided"),
    "a refusal left out": without("declined"),
    "another reason": changed("decided", "script", "skript"),
    "another specification": changed("specification", '"bytes":"', '"bytes":"AAAA'),
    "another policy": changed("policy-text", "allow", "deny"),
    "other bytes that left": changed("left", '"payload_bytes":7', '"payload_bytes":6'),
    "another account in a receipt": changed("receipt", '"account":""', '"account":"x"'),
    "not canonical": changed("left", '{"line"', '{ "line"'),
    "an order of its own": lambda lines: [lines[-2], *lines[:-2], lines[-1]],
    "twice": lambda lines: [*lines[:-1], lines[-2], lines[-1]],
}


@pytest.mark.parametrize("what", CHANGES)
def test_nothing_can_be_changed_or_left_out(files: LedgerFiles, what: str) -> None:
    lines = bundle(files)
    found = verify_lines(lines)
    assert {*found.attached.specs.values()} == {b"ran", b"waits", b"odd"}
    assert found.attached.policies == {1: b"[[allow]]"}
    assert found.attached.left == LOG
    assert len(found.attached.receipts) == 1
    with pytest.raises(VerificationFailed):
        verify_lines(CHANGES[what](lines))


@pytest.mark.parametrize("what", [each for each in CHANGES if "what left" not in each])
def test_not_even_the_ledgers_own_key_makes_other_specifications_or_policies_verify(
    files: LedgerFiles, what: str
) -> None:
    """A party that edits and signs anew is noticed where the entries name what is attached."""
    if what in ("other bytes that left", "a receipt left out", "twice"):
        return  # its own word, which the signature alone covers; or the same once more
    lines = CHANGES[what](bundle(files))[:-1]
    signer, attached = ledger_key_from_file(files.key), Attached()
    with pytest.raises(VerificationFailed):  # noqa: PT012 - some of it cannot even be read
        for line in lines:
            if Attached.is_one(line):
                attached.take(line)
        state = read_snapshot(files).state
        verify_lines([*lines, head_line(state, signer.sign, attached)])


def test_only_the_ledgers_key_signs(files: LedgerFiles) -> None:
    with pytest.raises(LedgerDamaged):
        list(bundle_lines(read_snapshot(files), ANA, LOG))


def test_the_command_writes_the_same_running_or_stopped_and_a_page_without_scripts(
    files: LedgerFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "party.toml"
    config.write_text(
        'coordinator = "127.0.0.1:1"\ncredentials = "pki"\ndata = "data"\nledger = "ledger"\n'
        'policy = "policy.toml"\n'
    )
    out = tmp_path / "evidence.jsonl"
    command = ["ledger", "evidence", "--config", str(config), "--out", str(out)]
    assert main(command) == EXIT_OK
    stopped = out.read_text()
    ledger = open_ledger(files)  # as a running party has it
    assert main(command) == EXIT_OK
    ledger.close()
    assert out.read_text() == stopped
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_text(stopped)
    capsys.readouterr()
    assert main(["ledger", "verify", str(elsewhere)]) == EXIT_OK
    assert "3 specifications, 1 policies, 1 receipts" in capsys.readouterr().out
    elsewhere.write_text(stopped.replace("bad_message", "low_message"))
    assert main(["ledger", "verify", str(elsewhere)]) == EXIT_CHECK_FAILED
    page = out.with_suffix(".html").read_text()
    assert page.count('<span class="cell-sub">(rho ') >= 6  # two lines, or tables are too wide
    assert EVIL not in page
    assert page.count("alert(1)") >= 2  # shown as text: the name and the reason
    assert "P was asked for three jobs and refused two of them." in page
