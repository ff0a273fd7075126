"""``colonnade pki`` as its users meet it: one file each way, one line for what is wrong."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from support.pki import create_pki

from colonnade.cli.main import main
from colonnade.core.errors import EXIT_USAGE
from colonnade.pki.authority import load_credentials

Output = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def request(role: str, name: str, *hosts: str, federation: str = "study") -> list[str]:
    who = ["--role", role, "--federation", federation, "--name", name]
    reach = [text for host in hosts for text in ("--host", host)]
    return ["pki", "request", "--folder", name, *who, *reach]


def approve(name: str, *options: str) -> list[str]:
    out = ["--out", f"{name}.pem", *options]
    return ["pki", "approve", "--authority", "ca", f"{name}/request.csr", *out]


def install(name: str, *options: str) -> list[str]:
    return ["pki", "install", "--folder", name, f"{name}.pem", *options]


INIT = ["pki", "init", "--folder", "ca", "--federation", "study"]


def run(capsys: Output, arguments: list[str]) -> str:
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def run_json(capsys: Output, arguments: list[str]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(run(capsys, [*arguments, "--json"]))
    return told


def refuse(capsys: Output, arguments: list[str], code: int) -> str:
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("colonnade: ")
    assert captured.err.count("\n") == 1
    assert "internal" not in captured.err
    return captured.err


def test_the_whole_path_from_authority_to_installed_member(here: Path, capsys: Output) -> None:
    made = run_json(capsys, INIT)
    (here / "ca" / "root-key.pem").rename(here / "offline")
    for role, name, hosts in (
        ("coordinator", "hub", ("hub.example.org", "10.0.0.7", "::1")),
        ("party", "lab", ()),
        ("operator", "ann", ()),
    ):
        asked = run_json(capsys, request(role, name, *hosts))
        uri, print_ = f"spiffe://study/{role}/{name}", asked["fingerprint"]
        assert asked == {"identity": uri, "fingerprint": print_, "request": f"{name}/request.csr"}
        given = run_json(capsys, approve(name, "--days", "7", "--fingerprint", print_))
        assert (given["identity"], given["fingerprint"]) == (uri, print_)
        assert all(host in given["names"] for host in hosts)
        put = run_json(capsys, install(name, "--fingerprint", made["root_fingerprint"]))
        assert (put["identity"], put["fingerprint"]) == (uri, print_)
        assert put["root_fingerprint"] == made["root_fingerprint"]
        loaded = load_credentials(here / name)
        assert loaded.identity.uri == uri
        assert (loaded.not_after - loaded.not_before).days == 7
        assert stat.S_IMODE((here / name / "key.pem").stat().st_mode) == 0o400


def test_show_tells_identity_fingerprint_life_and_use(here: Path, capsys: Output) -> None:
    root = run_json(capsys, INIT)["root_fingerprint"]
    mine = run_json(capsys, request("coordinator", "hub", "hub.example.org"))["fingerprint"]
    (shown,) = run_json(capsys, ["pki", "show", "hub/request.csr"])["shown"]
    assert shown["kind"] == "request"
    assert shown["identity"] == "spiffe://study/coordinator/hub"
    assert "hub.example.org" in shown["names"]
    assert shown["fingerprint"] == mine
    run(capsys, approve("hub"))
    leaf, issuer, top = run_json(capsys, ["pki", "show", "hub.pem"])["shown"]
    assert (leaf["kind"], leaf["fingerprint"], leaf["use"]) == ("certificate", mine, "serverAuth")
    assert leaf["not_before"] < leaf["not_after"]
    assert (issuer["kind"], issuer["use"]) == ("authority", "serverAuth")
    assert (top["kind"], top["fingerprint"]) == ("authority", root)
    text = run(capsys, ["pki", "show", "hub.pem"])
    assert "spiffe://study/coordinator/hub" in text
    assert mine in text
    assert leaf["not_after"] in text


def test_no_key_material_is_printed_or_travels(here: Path, capsys: Output) -> None:
    printed = run(capsys, INIT) + run(capsys, request("party", "lab"))
    printed += run(capsys, approve("lab")) + run(capsys, install("lab"))
    for file in ("lab.pem", "lab/request.csr", "lab/cert.pem", "lab/root.pem"):
        printed += run(capsys, ["pki", "show", file]) + (here / file).read_text()
    for key in ("lab/key.pem", "ca/root-key.pem", "ca/parties-key.pem"):
        printed += refuse(capsys, ["pki", "show", key], 3)
        secret = (here / key).read_text().splitlines()[1]
        assert len(secret) == 64
        assert secret not in printed
    assert "BEGIN PRIVATE" not in printed
    bundle = (here / "lab.pem").read_text()
    assert bundle.count("-----BEGIN") == bundle.count("-----BEGIN CERTIFICATE-----") == 3
    # Nothing half-written stays behind.
    assert {path.name for path in here.iterdir()} == {"ca", "lab", "lab.pem"}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["pki", "init", "--folder", "x", "--federation", "Study"], 4, "federation 'Study'"),
        (["pki", "init", "--folder", "/proc/x", "--federation", "study"], 3, "/proc"),
        (["pki", "init", "--folder", "lab", "--federation", "study"], 3, "not empty"),
        (INIT, 3, "not empty"),
        (request("party", "Big Name"), 4, "lower-case"),
        (request("party", "new", "localhost"), 4, "no host"),
        (request("coordinator", "new"), 4, "hosts"),
        (request("coordinator", "new", "bad host"), 4, "bad host"),
        (request("operator", "lab"), 4, "belongs to"),
        (["pki", "request", "--folder", "/proc/x", *request("party", "a")[4:]], 3, "/proc"),
        (approve("lab", "--fingerprint", "00" * 32), 4, "fingerprint is"),
        (approve("lab", "--fingerprint", "nonsense"), 4, "fingerprint"),
        (approve("lab", "--days", "0"), 3, "days"),
        (approve("stranger"), 4, "another federation"),
        (approve("missing"), 3, "no such file"),
        (["pki", "approve", "--authority", "lab", "lab/request.csr", "--out", "o"], 3, "no such"),
        (["pki", "approve", "--authority", "ca", "lab/key.pem", "--out", "o"], 3, "cannot be read"),
        (["pki", "approve", "--authority", "ca", "lab", "--out", "o"], 3, "is a directory"),
        (
            ["pki", "approve", "--authority", "ca", "lab/request.csr", "--out", "lab/key.pem"],
            3,
            "exists",
        ),
        (install("missing"), 3, "no such file"),
        (["pki", "install", "--folder", "lab", "lab/request.csr"], 3, "no certificate"),
        (["pki", "install", "--folder", "lab", "ca/root.pem"], 3, "1 certificates"),
        (["pki", "install", "--folder", "lab", "stranger.pem"], 4, "another key"),
        (["pki", "install", "--folder", "empty", "stranger.pem"], 3, "no such file"),
        (install("stranger", "--fingerprint", "00" * 32), 4, "root's fingerprint"),
        (["pki", "show", "missing"], 3, "no such file"),
        (["pki", "show", "lab"], 3, "is a directory"),
        (["pki", "show", "noise"], 3, "no certificate or request"),
    ],
)
def test_what_is_wrong_is_one_line_with_a_documented_exit_code(
    here: Path, capsys: Output, arguments: list[str], code: int, says: str
) -> None:
    run(capsys, INIT)
    run(capsys, request("party", "lab"))
    other = create_pki(here / "other", "trial")
    run(capsys, request("party", "stranger", federation="trial"))
    foreign = ["--authority", str(other.authority), "--out", "stranger.pem"]
    run(capsys, ["pki", "approve", "stranger/request.csr", *foreign])
    (here / "noise").write_bytes(b"\xff\x00" * 50)
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    if arguments == approve("stranger"):
        (here / "stranger.pem").unlink()
        before.pop(here / "stranger.pem")
    assert says in refuse(capsys, arguments, code)
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


def test_with_json_an_error_is_an_object_too(here: Path, capsys: Output) -> None:
    assert main([*request("party", "BIG"), "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["error"] == "bad_identity"


def test_asking_again_keeps_the_key_and_approval_can_be_repeated(
    here: Path, capsys: Output
) -> None:
    run(capsys, INIT)
    first = run_json(capsys, request("party", "lab"))
    run(capsys, approve("lab"))
    run(capsys, install("lab"))
    assert run_json(capsys, request("party", "lab")) == first
    (here / "lab.pem").unlink()
    run(capsys, approve("lab"))
    run(capsys, install("lab"))
    assert load_credentials(here / "lab").identity.name == "lab"


@pytest.mark.parametrize("verb", ["init", "request", "approve", "install", "show"])
def test_a_verb_without_its_arguments_is_wrong_usage(capsys: Output, verb: str) -> None:
    assert main(["pki", verb]) == EXIT_USAGE
    assert capsys.readouterr().err.count("\n") == 1
