"""The command line as its users meet it: output, exit codes, one clear line for what is wrong."""

import json
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.ledgers import MECHANISM, VALUE, key

from colonnade.bench.crash import run as crash
from colonnade.bench.crash.counters import Counters
from colonnade.cli.main import main
from colonnade.core.errors import EXIT_CHECK_FAILED
from colonnade.ledger.create import open_ledger
from colonnade.ledger.gate import Gate
from colonnade.ledger.receipts import key_to_pem
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.privacy.accounting import epsilon_of
from colonnade.privacy.sampling import OsNoise
from colonnade.wire.codec import release_to_proto

Output = pytest.CaptureFixture[str]


@pytest.fixture
def ledger(tmp_path: Path, capsys: Output) -> Path:
    """Return the folder of a ledger with three releases."""
    folder = tmp_path / "ledger"
    assert main(["party", "init", "--ledger", str(folder), "--name", "lab", "--rho", "1"]) == 0
    opened = open_ledger(LedgerFiles(folder))
    gate = Gate(opened, OsNoise())
    for round_ in range(3):
        released = gate.release(key(round_), b"r", MECHANISM, VALUE.copy)
    (tmp_path / "kept").write_bytes(release_to_proto(released).SerializeToString())
    opened.close()
    capsys.readouterr()
    return folder


def run_json(capsys: Output, *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_show_prints_cap_spending_and_what_is_left(ledger: Path, capsys: Output) -> None:
    assert main(["ledger", "show", str(ledger), "--entries"]) == 0
    text = capsys.readouterr().out
    assert "(rho 1)" in text
    assert "(rho 0.12" in text  # three times 0.04
    assert "(rho 0.88)" in text
    assert "discrete_gaussian" in text
    assert text.count(" charged ") == 3


def test_show_as_json_has_amounts_as_rho_and_epsilon(ledger: Path, capsys: Output) -> None:
    shown = run_json(capsys, "ledger", "show", str(ledger))
    (account,) = shown["accounts"]
    assert account["cap"]["units"] == 2**50
    assert account["cap"]["epsilon"] == epsilon_of(1.0, 1e-6)
    assert account["spent"]["units"] == 3 * MECHANISM.cost
    assert shown["private"] is True


def test_verify_of_a_ledger_in_use_says_by_whom(ledger: Path, capsys: Output) -> None:
    held = open_ledger(LedgerFiles(ledger))
    assert main(["ledger", "verify", str(ledger)]) == 6
    held.close()
    assert "in use by process" in capsys.readouterr().err


def test_verify_accepts_folder_and_export_and_agrees(
    ledger: Path, tmp_path: Path, capsys: Output
) -> None:
    export = tmp_path / "export"
    assert main(["ledger", "export", str(ledger), "--out", str(export)]) == 0
    capsys.readouterr()
    folder = run_json(capsys, "ledger", "verify", str(ledger))
    file = run_json(capsys, "ledger", "verify", str(export))
    assert folder == file
    assert file["verified"] is True


def test_a_damaged_ledger_gives_one_line_and_exit_code_5(ledger: Path, capsys: Output) -> None:
    # Everywhere: a page that was split leaves copies in space that is free now.
    content = (ledger / "ledger.db").read_bytes()
    assert b'"type":"charged"' in content
    damaged = content.replace(b'"type":"charged"', b'"type":"chargee"')
    (ledger / "ledger.db").write_bytes(damaged)
    (ledger / "ledger.db-wal").unlink()
    assert main(["ledger", "verify", str(ledger)]) == 5
    message = capsys.readouterr().err
    assert message.startswith("colonnade: ")
    assert message.count("\n") == 1


def test_a_changed_export_gives_one_line_and_exit_code_1(
    ledger: Path, tmp_path: Path, capsys: Output
) -> None:
    export = tmp_path / "export"
    main(["ledger", "export", str(ledger), "--out", str(export)])
    text = export.read_text()
    export.write_text(text.replace('"round":1', '"round":9'))
    assert main(["ledger", "verify", str(export)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_export_to_standard_output_is_the_file(
    ledger: Path, tmp_path: Path, capsys: Output
) -> None:
    main(["ledger", "export", str(ledger), "--out", str(tmp_path / "export")])
    capsys.readouterr()
    assert main(["ledger", "export", str(ledger)]) == 0
    assert capsys.readouterr().out == (tmp_path / "export").read_text()


@pytest.mark.parametrize("place", ["nowhere/export", "ledger/ledger.db", "ledger/x"])
def test_an_export_to_an_impossible_place_harms_nothing(
    ledger: Path, tmp_path: Path, capsys: Output, place: str
) -> None:
    assert main(["ledger", "export", str(ledger), "--out", str(tmp_path / place)]) == 3
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["ledger", "verify", str(ledger)]) == 0


def test_verify_tells_a_forged_ledger_by_its_key(
    ledger: Path, tmp_path: Path, capsys: Output
) -> None:
    shown = run_json(capsys, "ledger", "verify", str(ledger))
    right, forged = str(shown["public_key"]), tmp_path / "forged"
    assert main(["ledger", "verify", str(ledger), "--public-key", right]) == 0
    assert main(["party", "init", "--ledger", str(forged), "--name", "lab", "--rho", "1"]) == 0
    assert main(["ledger", "verify", str(forged), "--public-key", right]) == 1
    assert "another key" in capsys.readouterr().err


def test_a_cap_in_epsilon_is_set_and_recorded(ledger: Path, capsys: Output) -> None:
    cap = ["--epsilon", "12", "--delta", "1e-6", "--reason", "second study"]
    assert main(["ledger", "cap", str(ledger), *cap]) == 0
    capsys.readouterr()
    shown = run_json(capsys, "ledger", "show", str(ledger), "--entries")
    (account,) = shown["accounts"]
    assert account["cap"]["epsilon"] == pytest.approx(12.0, rel=1e-9)
    assert account["cap"]["epsilon"] <= 12.0
    assert "second study" in json.dumps(shown["entries_listed"])


def test_a_cap_below_the_spending_is_refused(ledger: Path, capsys: Output) -> None:
    assert main(["ledger", "cap", str(ledger), "--rho", "0.01", "--reason", "x"]) == 3
    assert "rho 0.12" in capsys.readouterr().err


def test_an_approver_must_sign_a_raise(tmp_path: Path, capsys: Output) -> None:
    pem = tmp_path / "approver.pem"
    pem.write_bytes(key_to_pem(Ed25519PrivateKey.generate()))
    folder = str(tmp_path / "ledger")
    init = ["party", "init", "--ledger", folder, "--name", "lab", "--rho", "1"]
    assert main([*init, "--approver", str(pem)]) == 0
    more = ["ledger", "cap", folder, "--rho", "2", "--reason", "x"]
    assert main(more) == 3
    assert "approver" in capsys.readouterr().err
    assert main([*more, "--approver-key", str(pem)]) == 0


def test_recover_takes_over_from_a_restored_backup(
    ledger: Path, tmp_path: Path, capsys: Output
) -> None:
    (ledger / "ledger.db").write_bytes(b"not a database")
    assert main(["ledger", "show", str(ledger)]) == 5
    backup = tmp_path / "ledger2"
    main(["party", "init", "--ledger", str(backup), "--name", "lab", "--rho", "1"])
    new = tmp_path / "new"
    (ledger / "ledger.db-wal").unlink()
    # Nothing can be read from a destroyed database: no cap, no recovery.
    assert main(["ledger", "recover", str(ledger), "--into", str(new)]) == 5
    assert "approver" in capsys.readouterr().err


def test_a_ledger_that_does_not_open_can_be_recovered_if_its_entries_are_readable(
    ledger: Path, tmp_path: Path, capsys: Output
) -> None:
    new = tmp_path / "new"
    database = apsw.Connection(str(ledger / "ledger.db"))
    database.execute("PRAGMA writable_schema = ON")
    database.execute(
        "UPDATE sqlite_master SET sql = replace(sql, 'line TEXT', 'line TEXT CHECK (0)')"
    )
    database.close()
    assert main(["ledger", "cap", str(ledger), "--rho", "2", "--reason", "a study"]) == 5
    capsys.readouterr()
    assert run_json(capsys, "ledger", "recover", str(ledger), "--into", str(new))["ledger"]
    assert main(["ledger", "verify", str(new)]) == 0


def test_recover_adopts_what_a_kept_release_shows(
    ledger: Path, tmp_path: Path, capsys: Output
) -> None:
    older = tmp_path / "older"
    assert main(["party", "init", "--ledger", str(older), "--name", "lab", "--rho", "1"]) == 0
    shutil.copytree(ledger, tmp_path / "copy")
    new, kept = str(tmp_path / "new"), str(tmp_path / "kept")
    recover = ["ledger", "recover", str(ledger), "--into", new]
    assert main([*recover, "--receipt", kept]) == 3  # it is whole
    (ledger / "ledger.stopped").touch()
    capsys.readouterr()
    result = run_json(capsys, *recover, "--receipt", kept)
    margin = pytest.approx(0.04)  # one release that may have been under way
    assert result["adopted_rho"] == {"": pytest.approx(0.16), "*": margin}
    assert main(["ledger", "verify", new, "--receipt", kept]) == 0
    assert main(["ledger", "verify", str(ledger)]) == 5


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["ledger", "show", "/nonexistent"], 3, "no ledger"),
        (["ledger", "verify", "/nonexistent"], 3, "neither a ledger folder nor an export"),
        (["party", "init", "--ledger", "X", "--name", "n", "--rho", "-1"], 3, "cap"),
        (["party", "init", "--ledger", "X", "--name", "n", "--rho", "nan"], 3, "cap"),
        (["party", "init", "--ledger", "X", "--name", "n", "--rho", "inf"], 3, "cap"),
        (["party", "init", "--ledger", "X", "--name", "n", "--rho", "1e9"], 3, "8191"),
        (["party", "init", "--ledger", "X", "--name", "n", "--epsilon", "0"], 3, "epsilon"),
        (
            ["party", "init", "--ledger", "X", "--name", "n", "--epsilon", "1", "--delta", "2"],
            3,
            "delta",
        ),
        (["party", "init", "--ledger", "/proc/x", "--name", "n", "--rho", "1"], 3, "no ledger can"),
        (["ledger", "show", "/nonexistent", "--delta", "0"], 3, "--delta"),
        (["ledger", "verify", "/nonexistent", "--delta", "2"], 3, "--delta"),
        (["ledger", "recover", "/nonexistent", "--into", "X"], 3, "cannot be used"),
        (["ledger", "verify", "/nonexistent", "--receipt", "/nonexistent"], 3, "Release"),
        (["bench", "crash", "--kills", "-1"], 3, "negative"),
        (["bench", "core", "--folder", "/nonexistent"], 3, "no folder"),
        (["simulate", "--rows", "1"], 3, "--rows"),
        (["simulate", "--parties", "0"], 3, "--parties"),
        (["simulate", "--informative", "0", "--rows", "100"], 3, "informative"),
        (["simulate", "--epsilon", "0", "--rows", "100"], 3, "--epsilon"),
        (["simulate", "--delta", "1", "--rows", "100"], 3, "--delta"),
        (["simulate", "--rounds", "0", "--rows", "100"], 3, "round"),
        (["simulate", "--data", "/nonexistent.csv", "--target", "y"], 3, "no such file"),
        (["simulate", "--data", "/nonexistent.csv"], 3, "--target"),
        (["plan", "--parties", "0"], 3, "--parties"),
        (["plan", "--label-owner", "bank"], 3, "--label-owner"),
        (["plan", "--correlation", "2"], 3, "correlation"),
        (["coordinator", "--config", "/nonexistent.toml"], 3, "no such file"),
        (["party", "run", "--config", "/nonexistent.toml"], 3, "no such file"),
        (["party", "bind", "--config", "/nonexistent.toml", "--reason", "x"], 3, "no such file"),
        (["party", "policy", "--config", "/nonexistent.toml"], 3, "no such file"),
        (["job", "list"], 3, "COLONNADE_COORDINATOR"),
        (["job", "list", "--coordinator", "hub:1"], 3, "COLONNADE_CREDENTIALS"),
        (["job", "list", "--coordinator", "h:1", "--insecure", "spiffe://a/operator/b"], 3, "loop"),
    ],
)
def test_bad_input_gives_one_line_and_a_documented_exit_code(
    arguments: list[str],
    code: int,
    says: str,
    capsys: Output,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    message = capsys.readouterr().err
    assert says in message
    assert message.count("\n") == 1
    assert "Traceback" not in message
    assert list(tmp_path.iterdir()) == []


def test_with_json_an_error_is_an_object_too(capsys: Output) -> None:
    assert main(["ledger", "show", "/nonexistent", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"] == "bad_input"


def test_an_internal_error_tells_its_type_and_nothing_else(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def secret(_: object) -> None:
        raise ZeroDivisionError("patient 4711 has value 17.3")

    monkeypatch.setattr("colonnade.cli.ledger.show.read_snapshot", secret)
    monkeypatch.delenv("COLONNADE_DEBUG", raising=False)
    assert main(["ledger", "show", "/tmp"]) == 70
    message = capsys.readouterr().err
    assert "ZeroDivisionError" in message
    assert "4711" not in message
    assert "17.3" not in message


def test_usage_errors_exit_with_2(capsys: Output) -> None:
    assert main([]) == 2
    capsys.readouterr()
    for words in ("ledger nothing", "ledger show", "party --version", "simulate x", "nothing"):
        assert main(words.split()) == 2
        assert capsys.readouterr().err.count("\n") == 1


def found_by_tracing(monkeypatch: pytest.MonkeyPatch, harm: Counters) -> None:
    """Stand in for the parts that try every write and system call; tests/crash runs them."""
    monkeypatch.setattr(crash, "run_operation_faults", lambda *_, **__: (Counters(), {"killed": 5}))
    monkeypatch.setattr(crash, "run_syscall_kills", lambda *_, **__: (harm, 7))
    monkeypatch.setattr(crash, "run_syscall_errors", lambda *_, **__: None)  # no strace here


@pytest.mark.slow
def test_the_crash_harness_prints_its_counters_by_name(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_by_tracing(monkeypatch, Counters())
    few = ["--kills", "10", "--images", "10", "--quick", "--folder", str(tmp_path)]
    result = run_json(capsys, "bench", "crash", *few)
    names = ("double_spent", "under_counted", "re_drawn", "mutated_ok", "stranded")
    assert [result[name] for name in (*names, "opened_with_more_budget")] == [0] * 6
    assert result["kills"] == result["images"] == 10
    assert result["corruptions"] == 500  # a quarter of what it is by default
    assert result["operations_failed"] == {"killed": 5}
    assert (result["syscalls_killed"], result["syscalls_failed"]) == (7, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_crash_harness_fails_when_it_counted_harm(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_by_tracing(monkeypatch, Counters(stranded=2))
    few = ["--kills", "4", "--images", "4", "--corruptions", "4", "--folder", str(tmp_path)]
    assert main(["bench", "crash", *few]) == EXIT_CHECK_FAILED
    assert "mutated_ok=0 stranded=2 " in capsys.readouterr().out


def test_the_core_benchmark_prints_its_figures_by_name(
    capsys: Output, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from colonnade.bench import core

    tiny = core.CoreSizes(
        repeats=1, samples=2000, peer_samples=200, rows=40_000, columns=4, releases=3
    )
    monkeypatch.setattr(core, "QUICK", tiny)
    figures = run_json(capsys, "bench", "core", "--quick", "--folder", str(tmp_path))
    for name in (
        "gaussian_speedup_vs_opendp",
        "gaussian_ns",
        "score_bandwidth_fraction",
        "sketch_speedup_vs_bincount",
        "durable_release_fraction",
        "select_1e6_ms",
        "peak_rss_mb",
    ):
        figure = figures[name]
        assert isinstance(figure, float), name
        assert figure > 0, name
