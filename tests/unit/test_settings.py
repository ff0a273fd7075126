"""Configuration files: every key known, every path relative to the file."""

import datetime as dt
from pathlib import Path

import pytest

from colonnade.core.config import Section, load_settings
from colonnade.core.errors import BadIdentity, BadInput
from colonnade.party import config as party
from colonnade.party import policy
from colonnade.server import config as coordinator


def section(**values: object) -> Section:
    return Section(values, "file.toml", Path("/etc/colonnade"))


def write(folder: Path, text: str) -> Path:
    path = folder / "a.toml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("text", 1),
        ("text", True),
        ("integer", "1"),
        ("integer", 1.0),
        ("integer", True),
        ("integer", -1),
        ("integer", 10**30),
        ("number", "1"),
        ("number", True),
        ("number", 0),
        ("number", -1.5),
        ("number", float("nan")),
        ("number", float("inf")),
        ("number", 10**400),
        ("flag", 1),
        ("flag", "true"),
        ("path", 3),
        ("texts", "one"),
        ("texts", ["one", 2]),
        ("date", "2030-01-01"),
        ("date", dt.datetime(2030, 1, 1, tzinfo=dt.UTC)),
        ("sections", {"a": 1}),
        ("sections", [1]),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(method: str, value: object) -> None:
    with pytest.raises(BadInput, match=r"file\.toml: thing must be") as refused:
        getattr(section(thing=value), method)("thing")
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("method", ["text", "integer", "number", "path", "texts"])
def test_a_missing_key_is_named(method: str) -> None:
    with pytest.raises(BadInput, match=r"file\.toml: thing is missing"):
        getattr(section(), method)("thing")


def test_what_may_be_absent_is() -> None:
    empty = section()
    assert empty.optional_path("thing") is None
    assert empty.date("thing") is None
    assert empty.sections("thing") == []
    assert not empty.flag("thing")
    assert (empty.text("thing", "x"), empty.integer("thing", 3)) == ("x", 3)


def test_paths_are_seen_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    text = 'a = "data"\nb = "/somewhere/else"\n'
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "deep", text)
    found = load_settings(Path("deep/a.toml"))
    assert found.path("a") == tmp_path / "deep" / "data"
    assert found.path("b") == Path("/somewhere/else")


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    missing, folder = tmp_path / "none.toml", tmp_path
    latin, broken = tmp_path / "latin.toml", tmp_path / "broken.toml"
    latin.write_bytes(b'a = "\xe9"')
    broken.write_text("a = = 1")
    cases = {missing: "no such file", folder: "is a directory", latin: "UTF-8", broken: "line 1"}
    for path, says in cases.items():
        with pytest.raises(BadInput, match=says) as refused:
            load_settings(path)
        assert str(path) in str(refused.value)


COORDINATOR = 'listen = "127.0.0.1:7443"\ncredentials = "pki"\ndatabase = "sqlite:///c.db"\n'
PARTY = 'coordinator = "hub.example.org:7443"\ncredentials = "pki"\ndata = "d"\nledger = "l"\n'
PARTY += 'policy = "p.toml"\n'


def test_the_templates_are_valid(tmp_path: Path) -> None:
    coordinator.load_config(write(tmp_path, coordinator.TEMPLATE))
    party.load_config(write(tmp_path, party.TEMPLATE))
    assert policy.load_policy(write(tmp_path, policy.TEMPLATE)).allowances


def test_unknown_keys_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="unknown key 'port'; known are listen"):
        coordinator.load_config(write(tmp_path, COORDINATOR + "port = 1\n"))
    with pytest.raises(BadInput, match="unknown key 'seed'"):
        party.load_config(write(tmp_path, PARTY + "seed = 1\n"))


def test_a_relative_database_is_seen_from_the_file(tmp_path: Path) -> None:
    found = coordinator.load_config(write(tmp_path, COORDINATOR))
    assert found.database == f"sqlite:///{tmp_path}/c.db"
    absolute = COORDINATOR.replace("sqlite:///c.db", "sqlite:////var/c.db")
    assert coordinator.load_config(write(tmp_path, absolute)).database == "sqlite:////var/c.db"
    postgres = COORDINATOR.replace("sqlite:///c.db", "postgresql://h/n")
    assert coordinator.load_config(write(tmp_path, postgres)).database == "postgresql://h/n"


@pytest.mark.parametrize("address", ["hub", "hub:", ":1", "hub:x", "hub:65536", "hub:-1"])
def test_an_address_needs_host_and_port(tmp_path: Path, address: str) -> None:
    with pytest.raises(BadInput, match="is not host:port"):
        coordinator.load_config(write(tmp_path, COORDINATOR.replace("127.0.0.1:7443", address)))


@pytest.mark.parametrize("host", ["0.0.0.0", "hub.example.org", "[::]", "127.0.0.2.example.org"])
def test_insecure_is_for_loopback_only(tmp_path: Path, host: str) -> None:
    listening = COORDINATOR.replace("127.0.0.1", host) + "insecure = true\n"
    dialling = PARTY.replace("hub.example.org", host) + "insecure = true\n"
    with pytest.raises(BadInput, match="for this machine only"):
        coordinator.load_config(write(tmp_path, listening))
    with pytest.raises(BadInput, match="for this machine only"):
        party.load_config(write(tmp_path, dialling))


def test_an_insecure_party_says_who_it_is_and_whom_it_expects(tmp_path: Path) -> None:
    text = PARTY.replace("hub.example.org", "localhost") + "insecure = true\n"
    with pytest.raises(BadInput, match="identity is missing"):
        party.load_config(write(tmp_path, text))


def test_a_policy_names_a_coordinator(tmp_path: Path) -> None:
    for uri, kind in (("spiffe://study/party/lab", BadInput), ("hub", BadIdentity)):
        text = policy.TEMPLATE.replace("spiffe://study/coordinator/hub", uri)
        with pytest.raises(kind):
            policy.load_policy(write(tmp_path, text))
