"""Renewing works word for word as the deployment pages say, and replaces nothing else."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from colonnade.cli.main import main
from colonnade.pki.authority import fingerprint, load_credentials

DEPLOY = Path(__file__).parents[2] / "deploy"
RUN = "docker compose run --rm colonnade "


def commands(page: str, title: str) -> list[str]:
    """Return the lines of a section that call the command."""
    text = (DEPLOY / page / "README.md").read_text()
    section = text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line.removeprefix(RUN) for line in lines if line.startswith(f"{RUN}pki ")]


def follow(lines: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    monkeypatch.chdir(folder)
    assert lines
    for line in lines:
        for name, value in values.items():
            line = line.replace(f'"${name}"', shlex.quote(value))
        assert main(shlex.split(line)) == 0, line


def test_members_and_coordinator_renew_by_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hub, hospital = tmp_path / "hub", tmp_path / "hospital"
    for folder in (hub, hospital):
        folder.mkdir()
    follow(commands("coordinator", "From nothing to a running coordinator"), hub, monkeypatch)
    ask, install = commands("party", "From nothing to a running party")
    (approve,) = commands("coordinator", "Approve a party")
    root = fingerprint((hub / "authority" / "root.pem").read_bytes())

    def join(ask: str, approve: str, install: str) -> None:
        follow([ask], hospital, monkeypatch)
        shutil.copy(hospital / "pki" / "request.csr", hub / "hospital.csr")
        told = fingerprint((hub / "hospital.csr").read_bytes())
        follow([approve], hub, monkeypatch, FINGERPRINT=told)
        shutil.copy(hub / "hospital.pem", hospital / "hospital.pem")
        follow([install], hospital, monkeypatch, ROOT_FINGERPRINT=root)

    join(ask, approve, install)
    before = [load_credentials(folder / "pki") for folder in (hub, hospital)]
    *renew_hub, approve_again = commands("coordinator", "Renew a certificate")
    ask_again, install_again = commands("party", "Renew the certificate")
    for _ in range(2):  # and the next time too
        follow(renew_hub, hub, monkeypatch)
        join(ask_again, approve_again, install_again)
    after = [load_credentials(folder / "pki") for folder in (hub, hospital)]
    for old, new in zip(before, after, strict=True):
        assert old.identity == new.identity
        assert old.key_pem == new.key_pem
        assert old.chain_pem != new.chain_pem
    capsys.readouterr()


@pytest.mark.parametrize("there", ["another member", "a key", "anything", "nothing"])
def test_an_approval_replaces_only_an_earlier_one_of_the_same_member(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    there: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for line in (
        "pki init --folder ca --federation study",
        "pki request --folder lab --role party --federation study --name lab",
        "pki request --folder other --role party --federation study --name other",
        "pki approve other/request.csr --authority ca --out other.pem",
    ):
        assert main(line.split()) == 0
    out = Path("out.pem")
    contents = {
        "another member": Path("other.pem").read_bytes(),
        "a key": Path("ca/parties-key.pem").read_bytes(),
        "anything": b"our only copy of something",
        "nothing": b"",
    }
    out.write_bytes(contents[there])
    capsys.readouterr()
    assert main(["pki", "approve", "lab/request.csr", "--authority", "ca", "--out", "out.pem"]) == 3
    assert "name another file" in capsys.readouterr().err
    assert out.read_bytes() == contents[there]
