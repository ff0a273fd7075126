"""Whatever file a command is given, it answers with one line and an exit code of the list.

Every verb that takes a path is tried with every kind of file that is not what it wants.
"""

import os
import re
import shutil
from pathlib import Path

import pytest
from support.tables import SCHEMA

from colonnade.cli.main import main
from colonnade.cli.parser import Found, load, verbs
from colonnade.core.errors import EXIT_CODES, EXIT_INTERNAL, EXIT_OK, EXIT_USAGE

Output = pytest.CaptureFixture[str]

MODEL_FIT = ("--data", "rows.csv", "--schema", "schema.toml", "--epsilon", "9", "--out", "fit")
# Every place of a path; BAD stands for the file that is no use there.
PLACES = {
    "simulate data": "simulate --data BAD --target y --parties 2",
    "simulate schema": "simulate --data rows.csv --target cost --schema BAD",
    "simulate out": "simulate --rows 2000 --out BAD/x",
    "simulate keep": "simulate --rows 2000 --keep BAD/x",
    "demo out": "demo --people 2000 --out BAD/x",
    "demo keep": "demo --people 2000 --keep BAD/x",
    "simulate parties": "simulate --data rows.csv --target cost --parties BAD",
    "simulate admm data": "simulate admm --data BAD --target y --clients 5",
    "simulate admm schema": "simulate admm --data rows.csv --target cost --clients 5 --schema BAD",
    "simulate admm out": "simulate admm --out BAD/x",
    "simulate admm keep": "simulate admm --keep BAD/x",
    "coordinator": "coordinator --config BAD",
    "coordinator new folder": "coordinator new study --host a --folder BAD/x",
    "coordinator new approve": "coordinator new study --host a --approve BAD",
    "party new data": "party new lab --federation study --coordinator a:1 --data BAD --id id",
    "party new folder": "party new lab --federation study --coordinator a:1 --folder BAD/x",
    "party join bundle": "party join BAD --folder enrolled --epsilon 1",
    "party join folder": "party join member.pem --folder BAD --epsilon 1",
    "party join mirror": "party join enrolled.pem --folder enrolled --epsilon 1 --mirror BAD/x",
    "party ingest config": "party ingest --config BAD",
    "party suggest source": "party suggest BAD",
    "party suggest out": "party suggest rows.csv --out BAD/x",
    "party init approver": "party init --ledger new --name lab --rho 1 --approver BAD",
    "party init ledger": "party init --ledger BAD/x --name lab --rho 1",
    "party init mirror": "party init --ledger new --name lab --rho 1 --mirror BAD/x",
    "party ingest source": "party ingest --schema schema.toml --out new BAD",
    "party ingest schema": "party ingest --schema BAD --out new rows.csv",
    "party ingest roster": "party ingest --schema ids.toml --out new --roster BAD rows.csv",
    "party ingest key": "party ingest --schema ids.toml --out new --roster people.txt "
    "--roster-key BAD rows.csv",
    "party ingest out": "party ingest --schema schema.toml --out BAD/x rows.csv",
    "party ingest database": "party ingest --schema schema.toml --out new --query SELECT_1 "
    "--database BAD",
    "party bounds": "party bounds --config BAD --epsilon 1",
    "party bounds data": "party bounds --data BAD --ledger ledger --epsilon 1",
    "party bounds ledger": "party bounds --data table --ledger BAD --epsilon 1",
    "party bounds mirror": "party bounds --data table --ledger ledger --mirror BAD --epsilon 1",
    "party fit data": "party fit --data BAD --ledger ledger --epsilon 1 --out new",
    "party fit ledger": "party fit --data table --ledger BAD --epsilon 1 --out new",
    "party fit mirror": "party fit --data table --ledger ledger --mirror BAD --epsilon 1 --out new",
    "party fit out": "party fit --data table --ledger ledger --epsilon 1 --out BAD/x",
    "party run": "party run --config BAD",
    "party vault": "party vault --config BAD",
    "party net": "party net --config BAD",
    "party console": "party console --config BAD",
    "party console key": "party console --config party.toml --key BAD",
    "party peers": "party peers --config BAD",
    "party pin": f"party pin lab ed25519:{'0' * 64} --config BAD",
    "party rows": "party rows --config BAD --people people.txt --out new",
    "party rows people": "party rows --config party.toml --people BAD --out new",
    "party rows out": "party rows --config party.toml --people people.txt --out BAD/x",
    "coordinator console": "coordinator console --coordinator 127.0.0.1:1 --credentials BAD",
    "export run": "export BAD --format sql",
    "export out": "export fit/model.json --format sql --out BAD/x",
    "party policy": "party policy --config BAD",
    "party jobs": "party jobs --config BAD",
    "party approve": "party approve 00 --config BAD --key a.pem",
    "party approve key": "party approve 00 --config party.toml --key BAD",
    "party hold": "party hold 00 --config BAD --key a.pem --reason why",
    "party hold key": "party hold 00 --config party.toml --key BAD --reason why",
    "party refuse": "party refuse 00 --config BAD --key a.pem --reason why",
    "party refuse key": "party refuse 00 --config party.toml --key BAD --reason why",
    "party bind": "party bind --config BAD --reason why",
    "pki init": "pki init --folder BAD/x --federation study",
    "pki request": "pki request --folder BAD/x --role party --federation study --name lab",
    "pki approve request": "pki approve BAD --authority ca --out new.pem",
    "pki approve authority": "pki approve member/request.csr --authority BAD --out new.pem",
    "pki approve out": "pki approve member/request.csr --authority ca --out BAD/x",
    "pki install bundle": "pki install --folder member BAD",
    "pki install folder": "pki install --folder BAD member.pem",
    "pki list": "pki list --authority BAD",
    "pki revoke": "pki revoke lab --authority BAD --reason why",
    "pki revoke denylist": "pki revoke lab --authority ca --denylist BAD --reason why",
    "pki renew": "pki renew --folder BAD",
    "pki renew authority": "pki renew --folder member --authority BAD",
    "party renew": "party renew --config BAD",
    "pki show": "pki show BAD",
    "preflight party": "preflight --party BAD",
    "preflight coordinator": "preflight --coordinator BAD",
    "ledger show": "ledger show BAD",
    "ledger show mirror": "ledger show ledger --mirror BAD",
    "ledger verify": "ledger verify BAD",
    "ledger verify mirror": "ledger verify ledger --mirror BAD",
    "ledger export mirror": "ledger export ledger --mirror BAD",
    "ledger cap mirror": "ledger cap ledger --rho 2 --reason why --mirror BAD",
    "ledger recover new mirror": "ledger recover ledger --into new --into-mirror BAD/x",
    "ledger verify receipt": "ledger verify ledger --receipt BAD",
    "ledger export": "ledger export BAD",
    "ledger export out": "ledger export ledger --out BAD/x",
    "ledger cap": "ledger cap BAD --rho 2 --reason why",
    "ledger cap approver": "ledger cap ledger --rho 2 --reason why --approver-key BAD",
    "ledger evidence": "ledger evidence --config BAD --out new.jsonl",
    "ledger evidence out": "ledger evidence --config party.toml --out BAD/x",
    "ledger approvers": "ledger approvers BAD",
    "ledger approvers mirror": "ledger approvers ledger --mirror BAD",
    "ledger approvers add": "ledger approvers ledger --add BAD --reason why",
    "ledger approvers remove": "ledger approvers ledger --remove BAD --reason why",
    "ledger approvers key": "ledger approvers ledger --add a.pem --reason w --approver-key BAD",
    "ledger join": "ledger join BAD --people ledger --reason why",
    "ledger join mirror": "ledger join ledger --mirror BAD --people ledger --reason why",
    "ledger join people": "ledger join ledger --people BAD --reason why",
    "ledger join people mirror": "ledger join ledger --people other --people-mirror BAD --reason w",
    "ledger release": "ledger release BAD 00",
    "ledger release mirror": "ledger release ledger 00 --mirror BAD",
    "ledger recover": "ledger recover BAD --into new",
    "ledger recover into": "ledger recover ledger --into BAD/x",
    "ledger recover receipt": "ledger recover ledger --into new --receipt BAD",
    "fit data": "fit --data BAD --schema schema.toml --epsilon 1 --out new",
    "fit schema": "fit --data rows.csv --schema BAD --epsilon 1 --out new",
    "fit ledger": "fit --data rows.csv --schema schema.toml --epsilon 1 --out new --ledger BAD",
    "fit mirror": "fit --data rows.csv --schema schema.toml --epsilon 1 --out new --ledger ledger "
    "--mirror BAD",
    "fit out": "fit --data rows.csv --schema schema.toml --epsilon 1 --out BAD/x",
    "predict model": "predict --model BAD --data rows.csv",
    "predict data": "predict --model fit/model.json --data BAD",
    "predict out": "predict --model fit/model.json --data rows.csv --out BAD/x",
    "job credentials": "job list --coordinator 127.0.0.1:1 --credentials BAD",
    "job spec": "job submit --coordinator 127.0.0.1:1 --credentials member --spec BAD",
}
KINDS = ("missing", "folder", "empty", "binary", "marked", "wide", "cut", "deep", "huge", "fifo")
# A folder is where something may be written, and where an ingested table or a ledger may be.
# A byte order mark says that a table is UTF-16.
MAY_WORK = (
    {("pki revoke denylist", "empty")}  # it denies nobody yet
    | {(place, "wide") for place in ("party ingest source", "predict data", "party suggest source")}
    | {(place, "folder") for place in PLACES if place.endswith((" out", " keep"))}
    | {
        (place, "folder")
        for place in ("party init ledger", "party init mirror", "pki init", "pki request")
    }
    | {("ledger recover into", "folder"), ("ledger recover new mirror", "folder")}
    | {
        (place, "folder")
        for place in ("coordinator new folder", "party new folder", "party join mirror")
    }
)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one good file of each sort."""
    made = tmp_path_factory.mktemp("ground")
    rows = [f"{i % 90},{i % 7},p{i}" for i in range(40)]
    (made / "rows.csv").write_text("age,cost,id\n" + "\n".join(rows) + "\n")
    (made / "people.txt").write_text("p1\np2\n")
    (made / "schema.toml").write_text(SCHEMA)
    (made / "ids.toml").write_text('id = "id"\n' + SCHEMA)
    before = Path.cwd()
    os.chdir(made)
    try:
        for line in (
            "party ingest --schema schema.toml --out table rows.csv",
            "party init --ledger ledger --name lab --rho 1",
            "party init --ledger other --name lab --rho 1",
            "pki init --folder ca --federation study",
            "pki request --folder member --role operator --federation study --name ann",
            "pki approve member/request.csr --authority ca --out member.pem",
            "pki install --folder member member.pem",
            "party new lab --federation study --coordinator a:1 --folder enrolled",
            "pki approve enrolled/lab.csr --authority ca --out enrolled.pem",
        ):
            assert main(line.split()) == 0
        assert main(["fit", *MODEL_FIT]) == 0
    finally:
        os.chdir(before)
    return made


def spoil(kind: str) -> Path:
    """Make a file that is no use."""
    path = Path("bad.file")
    contents = {
        "empty": b"",
        "binary": bytes(range(256)) * 8,
        "marked": b"\xef\xbb\xbf\xef\xbb\xbfhello\nworld\n",
        "wide": "\ufeffage,cost\n1,2\n".encode("utf-16-le"),
        "cut": b'age,cost\n"1,2\n',
        "deep": b"[" * 100_000,
    }
    if kind == "folder":
        path.mkdir()
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(1 << 25)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind != "missing":
        path.write_bytes(contents[kind])
    return path


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_a_bad_file_is_told_in_one_line(
    ground: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.delenv("COLONNADE_DEBUG", raising=False)
    # A damaged mirror is read again, in vain.
    monkeypatch.setattr(
        "colonnade.ledger.storage.snapshot._PATIENCE_S", 0.0
    )  # with a damaged mirror
    wanted = PLACES[place]
    for kind in KINDS:
        if (place, kind) in MAY_WORK or (kind == "missing" and "BAD/x" in wanted):
            continue  # what it wants, or may make
        if kind == "fifo" and "BAD/x" not in wanted:
            continue  # a pipe that nobody writes to waits, as everywhere
        folder = shutil.copytree(ground, tmp_path / kind)
        monkeypatch.chdir(folder)
        line = wanted.replace("BAD", str(spoil(kind)))
        capsys.readouterr()
        code = main([word.replace("SELECT_1", "SELECT 1 AS age") for word in line.split()])
        said = capsys.readouterr().err
        assert code in EXIT_CODES, kind
        assert code not in (EXIT_OK, EXIT_USAGE, EXIT_INTERNAL), (kind, said)
        told = [each for each in said.splitlines() if each.startswith("colonnade: ")]
        assert len(told) == 1 or place.startswith("preflight"), (kind, said)
        assert "Traceback" not in said, kind
        shutil.rmtree(folder)


def test_every_option_that_takes_a_path_is_tried() -> None:
    # Look into every verb's parser: a new option of this type has to be added above.
    found = set[str]()
    for path, command in verbs():
        _, parser = load(Found(path, command, ()))
        for action in parser._actions:  # argparse has no public name for them
            if action.type is Path:
                option = action.option_strings[0] if action.option_strings else ""
                found.add(" ".join((*path, option)))
    tried = set[str]()
    for line in PLACES.values():
        words = line.split()
        at = next(i for i, word in enumerate(words) if re.fullmatch(r"BAD(/x)?", word))
        names = [word for word in words[:2] if word.isalpha() and word.islower()]
        option = words[at - 1] if words[at - 1].startswith("--") else ""
        tried.add(" ".join((*names, option)))
    # `recover` takes what is left, whatever that is; the others need a coordinator, or are figures.
    elsewhere = ("bench", "job", "align", "ledger recover --mirror")
    assert [each for each in found - tried if not each.startswith(elsewhere)] == []
