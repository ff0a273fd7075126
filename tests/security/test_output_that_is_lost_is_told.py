"""A command whose output cannot be written, or that is stopped, says so and ends accordingly.

Real processes: what Python does with its streams at its own end is part of the claim.
"""

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.tables import SCHEMA

from colonnade.cli.main import main
from colonnade.core.errors import EXIT_BAD_INPUT, EXIT_BUSY, EXIT_OK, EXIT_SIGNAL

COMMAND = (sys.executable, "-m", "colonnade.cli.main")
FULL = Path("/dev/full")
# Every verb that prints a result without a federation; each runs on what `ground` made.
PRINTING = (
    "--version",
    "--help",
    "party init --help",
    "plan --rows 20000 --features 10 --epsilon 1",
    "party init --ledger new --name lab --rho 1",
    "party ingest --schema schema.toml --out new rows.csv",
    "party run --template",
    "party policy --template",
    "coordinator --template",
    "fit --data rows.csv --schema schema.toml --epsilon 1 --out new",
    "predict --model fit/model.json --data rows.csv",
    "predict --model fit/model.json --data rows.csv --out new.csv",
    "ledger show ledger --entries",
    "ledger verify ledger",
    "ledger export ledger",
    "pki init --folder new --federation study",
    "pki request --folder new --role party --federation study --name lab",
    "pki show ca/root.pem",
)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ground")
    rows = [f"{i % 90},{i % 7}" for i in range(4000)]
    (made / "rows.csv").write_text("age,cost\n" + "\n".join(rows) + "\n")
    (made / "schema.toml").write_text(SCHEMA)
    before = Path.cwd()
    os.chdir(made)
    try:
        for line in (
            "party init --ledger ledger --name lab --rho 1",
            "pki init --folder ca --federation study",
            "fit --data rows.csv --schema schema.toml --epsilon 9 --out fit",
        ):
            assert main(line.split()) == 0
    finally:
        os.chdir(before)
    return made


@pytest.fixture
def there(ground: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ground, tmp_path / "work"))


def run(
    line: str,
    folder: Path,
    *,
    stdout: int | None = subprocess.PIPE,
    before: Callable[[], None] | None = None,
    **settings: str,
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *line.split()],
        cwd=folder,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        preexec_fn=before,
        env={**os.environ, **settings},
    )


def one_line(ended: "subprocess.CompletedProcess[str]") -> str:
    """Return the one line that tells what went wrong; nothing else may look like an error."""
    (told,) = (line for line in ended.stderr.splitlines() if line.startswith("colonnade: "))
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    return told


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("line", PRINTING)
def test_a_full_standard_output_is_told(there: Path, line: str) -> None:
    with FULL.open("wb") as full:
        ended = run(line, there, stdout=full.fileno())
    assert ended.returncode == EXIT_BAD_INPUT, ended.stderr
    assert f"standard output cannot be written: {os.strerror(errno.ENOSPC)}" in one_line(ended)


@pytest.mark.slow
@pytest.mark.parametrize("line", PRINTING)
def test_a_closed_standard_output_is_told(there: Path, line: str) -> None:
    ended = run(line, there, stdout=None, before=lambda: os.close(1))
    assert ended.returncode == EXIT_BAD_INPUT, ended.stderr
    assert "standard output cannot be written: it is closed" in one_line(ended)


@pytest.mark.slow
@pytest.mark.parametrize("line", PRINTING)
def test_a_reader_that_went_away_is_told(there: Path, line: str) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        ended = run(line, there, stdout=writes)
    finally:
        os.close(writes)
    assert ended.returncode == EXIT_SIGNAL + signal.SIGPIPE, ended.stderr
    assert "reader of standard output went away" in one_line(ended)


def test_a_closed_standard_error_changes_no_exit_code_and_no_output(there: Path) -> None:
    good = run("ledger export ledger", there, before=lambda: os.close(2))
    assert good.returncode == EXIT_OK
    assert good.stdout.count('"type":') == 3
    bad = run("ledger show nowhere", there, before=lambda: os.close(2))
    assert (bad.returncode, bad.stdout) == (EXIT_BAD_INPUT, "")


def test_no_file_takes_the_place_of_a_closed_stream(there: Path) -> None:
    """A ledger that got the number 1 or 2 would have lines printed into it."""

    def close_all() -> None:
        for number in (0, 1, 2):
            os.close(number)

    ended = run("party init --ledger new --name lab --rho 1", there, stdout=None, before=close_all)
    assert ended.returncode == EXIT_BAD_INPUT  # the key could not be shown; the ledger is whole
    assert run("ledger verify new", there).returncode == EXIT_OK


# -- disks --------------------------------------------------------------------------------------


def small_files(n_bytes: int) -> Callable[[], None]:
    """Let no file grow beyond so many bytes: writes fail as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


@pytest.mark.slow
@pytest.mark.parametrize("n_bytes", [1, 1000, 10_000])
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("party init --ledger new --name lab --rho 1", "no ledger can be made in new"),
        ("party ingest --schema schema.toml --out new rows.csv", ""),
        ("predict --model fit/model.json --data rows.csv --out new", ""),
        ("fit --data rows.csv --schema schema.toml --epsilon 1 --out new", ""),
    ],
)
def test_files_that_cannot_grow_are_told_and_leave_nothing(
    there: Path, tmp_path: Path, line: str, told: str, n_bytes: int
) -> None:
    (tmp_path / "temporary").mkdir()
    ended = run(line, there, before=small_files(n_bytes), TMPDIR=str(tmp_path / "temporary"))
    if line.startswith("fit") and ended.returncode == EXIT_OK:
        pytest.skip("all of its files were smaller")
    assert ended.returncode == EXIT_BAD_INPUT, ended.stderr
    assert told in one_line(ended)
    assert "damaged" not in one_line(ended)  # the source is as it should be
    assert not (there / "new").exists() or line.startswith("fit")
    assert [*(tmp_path / "temporary").iterdir()] == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
@pytest.mark.parametrize("size", ["4k", "64k"])
@pytest.mark.parametrize(
    "line",
    [
        "party init --ledger SMALL/new --name lab --rho 1",
        "party ingest --schema schema.toml --out SMALL/new rows.csv",
        "predict --model fit/model.json --data rows.csv --out SMALL/new",
        "pki init --folder SMALL/new/a/b --federation study",
        "ledger export ledger --out SMALL/new",
        "ledger recover broken --into SMALL/new",
    ],
)
def test_a_full_disk_is_told_as_one(there: Path, line: str, size: str) -> None:
    (there / "small").mkdir()
    shutil.copytree(there / "ledger", there / "broken")
    (there / "broken" / "head.mirror").unlink()
    filled = "head -c 1G /dev/zero >small/filler 2>/dev/null;" if size == "4k" else ""
    script = (
        f"mount -t tmpfs -o size={size} none small || exit 99; {filled}"
        f" {' '.join(COMMAND)} {line.replace('SMALL', 'small')}; code=$?; "
        "find small -mindepth 1 ! -name filler >left; exit $code"
    )
    ended = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script],
        cwd=there,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if ended.returncode == 99 or "unshare" in ended.stderr:
        pytest.skip("no file system can be mounted here")
    if ended.returncode == EXIT_OK and line.startswith(("predict", "pki", "ledger")):
        pytest.skip("what it writes is smaller")
    assert ended.returncode == EXIT_BAD_INPUT, ended.stderr
    told = one_line(ended).lower()
    assert "no space left" in told or "disk is full" in told
    assert (there / "left").read_text() in ("", "small/new\nsmall/new/a\n")


# -- signals and locks --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(  # every signal, and every command, once
    ("line", "number"),
    [
        ("party ingest --schema schema.toml --out new big.csv", signal.SIGHUP),
        ("fit --data big.csv --schema schema.toml --epsilon 1 --out new", signal.SIGINT),
        ("predict --model fit/model.json --data big.csv --out new", signal.SIGTERM),
    ],
)
def test_a_stopped_command_says_so_and_leaves_no_rows(
    there: Path, tmp_path: Path, line: str, number: signal.Signals
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    block = "".join(f"{i % 90},{i % 7}\n" for i in range(5000))
    (there / "big.csv").write_text("age,cost\n" + 300 * block)
    for attempt in range(5):  # on a busy machine it may have ended before it is seen to work
        with (there / "big.csv").open("a") as file:
            file.write(200 * attempt * block)
        shutil.rmtree(there / "new", ignore_errors=True)
        (there / "new").unlink(missing_ok=True)
        started = subprocess.Popen(
            [*COMMAND, *line.split()],
            cwd=there,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        while started.poll() is None:
            # Raw rows are being staged: here, or in a folder of the command's own.
            if [*there.glob("new/.ingest/*")] or [*temporary.rglob("staging.duckdb")]:
                break
            time.sleep(0.005)
        started.send_signal(number)
        _, said = started.communicate(timeout=60)
        if started.returncode != EXIT_OK:
            break
    assert started.returncode == EXIT_SIGNAL + number, said
    assert said.splitlines()[-1] == f"colonnade: stopped by {number.name}"
    assert "Traceback" not in said
    assert [*temporary.iterdir()] == []
    assert [*there.glob("new*")] == []


@pytest.mark.slow
def test_a_second_coordinator_on_a_database_is_told_that_it_is_in_use(there: Path) -> None:
    (there / "hub.toml").write_text(
        'listen = "127.0.0.1:0"\ninsecure = true\nfederation = "study"\n'
        'database = "sqlite:///hub.db"\n'
    )
    first = subprocess.Popen(
        [*COMMAND, "coordinator", "--config", "hub.toml"],
        cwd=there,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert first.stdout is not None
        assert any(line.startswith("listening") for line in first.stdout)
        second = run("coordinator --config hub.toml", there)
        assert second.returncode == EXIT_BUSY
        assert "another coordinator uses this database" in one_line(second)
    finally:
        first.terminate()
        assert first.wait(timeout=30) == EXIT_OK
        assert first.stdout is not None
        first.stdout.close()


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_a_process_goes_on_where_nobody_can_read_it(there: Path) -> None:
    (there / "hub.toml").write_text(
        'listen = "127.0.0.1:0"\ninsecure = true\nfederation = "study"\n'
        'database = "sqlite:///hub.db"\nhealth = "127.0.0.1:0"\n'
    )
    with FULL.open("wb") as full:
        served = subprocess.Popen(
            [*COMMAND, "coordinator", "--config", "hub.toml"],
            cwd=there,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert served.stderr is not None
    assert any("health address=" in line for line in served.stderr)  # it serves
    served.terminate()
    _, said = served.communicate(timeout=30)
    assert served.returncode == EXIT_OK, said
