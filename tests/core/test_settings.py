"""Configuration files: every key known, every path relative to the file."""

import datetime as dt
from pathlib import Path
from typing import Literal

import pytest

from colonnade.core.config import Count, Finite, Positive, Strict, Text, Whole, convert, load_toml
from colonnade.core.errors import BadIdentity, BadInput
from colonnade.party import config as party
from colonnade.party import policy_file as policy
from colonnade.server import config as coordinator


class Part(Strict, frozen=True):
    name: str = ""
    text: Text = "x"


class Shape(Strict, frozen=True):
    text: str = ""
    filled: Text = "x"
    whole: Whole = 0
    count: Count = 1
    positive: Positive = 1.0
    finite: Finite = 0.0
    flag: bool = False
    path: Path | None = None
    texts: tuple[str, ...] = ()
    date: dt.date | None = None
    choice: Literal["one", "two"] | None = None
    part: Part | None = None
    parts: tuple[Part, ...] = ()


def write(folder: Path, text: str) -> Path:
    path = folder / "a.toml"
    path.write_text(text, "utf-8")
    return path


def refusal(document: object) -> str:
    with pytest.raises(BadInput) as refused:
        convert(document, Shape, origin="file.toml")
    assert refused.value.code == "bad_input"
    assert len(str(refused.value).splitlines()) == 1
    return str(refused.value).removeprefix("file.toml: ")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("text", 1, "a text"),
        ("text", True, "a text"),
        ("filled", "", "a text that is not empty"),
        ("whole", "1", "a whole number"),
        ("whole", 1.0, "a whole number"),
        ("whole", True, "a whole number"),
        ("whole", -1, "a whole number >= 0"),
        ("whole", 10**30, "a whole number <= 1000000"),
        ("count", 0, "a whole number >= 1"),
        ("positive", "1", "a number"),
        ("positive", True, "a number"),
        ("positive", 0, "a number > 0.0"),
        ("positive", -1.5, "a number > 0.0"),
        ("positive", float("nan"), "a number > 0.0"),
        ("positive", float("inf"), "a number < 1e+300"),
        ("positive", 10**400, "a finite number"),
        ("finite", float("nan"), "a number >= "),
        ("finite", float("inf"), "a number <= "),
        ("finite", float("-inf"), "a number >= "),
        ("flag", 1, "true or false"),
        ("flag", "true", "true or false"),
        ("path", 3, "a text"),
        ("texts", "one", "a list"),
        ("date", "2030-01-01", "a date such as 2030-12-31"),
        ("date", dt.datetime(2030, 1, 1, tzinfo=dt.UTC), "a date such as 2030-12-31"),
        ("choice", "three", "one of one, two"),
        ("choice", 3, "one of one, two"),
        ("parts", {"a": 1}, "a list"),
    ],
)
def test_a_value_of_another_type_is_refused_by_key(key: str, value: object, expected: str) -> None:
    assert refusal({key: value}).startswith(f"{key}: must be {expected}")


def test_a_fault_within_a_table_names_the_table() -> None:
    assert refusal({"texts": ["one", 2]}) == "texts 2: must be a text"
    assert refusal({"part": {"text": 1}}) == "[part] text: must be a text"
    assert refusal({"parts": [{}, {"text": 1}]}) == "[parts 2] text: must be a text"
    named = {"name": "age", "colour": 1}
    assert refusal({"parts": [named]}) == (
        "[parts 1 'age'] unknown key 'colour'; known keys: name, text"
    )


def test_a_value_is_never_shown() -> None:
    values = [{key: ["secret", 7171]} for key in Shape.__struct_fields__]
    for document in (*values, {"choice": "secret"}, {"path": {"name": "secret"}}, {"count": -7171}):
        said = refusal(document)
        assert "secret" not in said
        assert "7171" not in said


def test_paths_are_seen_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path)
    for written, seen in (("data", tmp_path / "deep" / "data"), ("/else", Path("/else"))):
        write(tmp_path / "deep", f'path = "{written}"\n')
        assert load_toml(Path("deep/a.toml"), Shape).path == seen


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    missing, folder = tmp_path / "none.toml", tmp_path
    latin, broken, deep = (tmp_path / f"{name}.toml" for name in ("latin", "broken", "deep"))
    latin.write_bytes(b'a = "\xe9"')
    broken.write_text("a = = 1")
    deep.write_text("a = " + "[" * 100_000)
    repeated = write(tmp_path, "text = '1'\ntext = '2'\n")
    for path in (missing, folder, latin, broken, deep, repeated):
        with pytest.raises(BadInput) as refused:
            load_toml(path, Shape)
        assert refused.value.code == "bad_input"
        assert str(refused.value).startswith(f"{path}: ")
        assert "\n" not in str(refused.value)


COORDINATOR = 'listen = "127.0.0.1:7443"\ncredentials = "pki"\ndatabase = "sqlite:///c.db"\n'
PARTY = 'coordinator = "hub.example.org:7443"\ncredentials = "pki"\ndata = "d"\nledger = "l"\n'
PARTY += 'policy = "p.toml"\n'


def test_the_templates_are_valid(tmp_path: Path) -> None:
    coordinator.load_config(write(tmp_path, coordinator.TEMPLATE))
    party.load_config(write(tmp_path, party.TEMPLATE))
    assert policy.load_policy(write(tmp_path, policy.TEMPLATE)).allowances


def test_unknown_keys_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"'port'.*listen"):
        coordinator.load_config(write(tmp_path, COORDINATOR + "port = 1\n"))
    with pytest.raises(BadInput, match="'seed'"):
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
    with pytest.raises(BadInput, match="host:port"):
        coordinator.load_config(write(tmp_path, COORDINATOR.replace("127.0.0.1:7443", address)))
    for key in ("metrics", "health"):
        with pytest.raises(BadInput, match=rf"a\.toml: {key}: "):
            coordinator.load_config(write(tmp_path, f'{COORDINATOR}{key} = "{address}"\n'))


@pytest.mark.parametrize("host", ["0.0.0.0", "hub.example.org", "[::]", "127.0.0.2.example.org"])
def test_insecure_is_for_loopback_only(tmp_path: Path, host: str) -> None:
    listening = COORDINATOR.replace("127.0.0.1", host) + "insecure = true\n"
    dialling = PARTY.replace("hub.example.org", host) + "insecure = true\n"
    with pytest.raises(BadInput, match="TLS"):
        coordinator.load_config(write(tmp_path, listening))
    with pytest.raises(BadInput, match="TLS"):
        party.load_config(write(tmp_path, dialling))


def test_an_insecure_party_says_who_it_is_and_whom_it_expects(tmp_path: Path) -> None:
    text = PARTY.replace("hub.example.org", "localhost") + "insecure = true\n"
    with pytest.raises(BadInput, match=r"a\.toml: identity: "):
        party.load_config(write(tmp_path, text))


def test_a_secure_process_needs_its_credentials(tmp_path: Path) -> None:
    for load, text in ((coordinator.load_config, COORDINATOR), (party.load_config, PARTY)):
        with pytest.raises(BadInput, match=r"a\.toml: credentials: "):
            load(write(tmp_path, text.replace('credentials = "pki"\n', "")))


def test_an_insecure_process_uses_no_credentials(tmp_path: Path) -> None:
    names = 'identity = "a"\ncoordinator_identity = "b"\ninsecure = true\n'
    text = PARTY.replace("hub.example.org", "localhost") + names
    assert party.load_config(write(tmp_path, text)).credentials is None
    found = coordinator.load_config(write(tmp_path, COORDINATOR + "insecure = true\n"))
    assert found.credentials is None


def test_the_log_of_messages_lies_beside_the_file_unless_named(tmp_path: Path) -> None:
    assert party.load_config(write(tmp_path, PARTY)).uplink_log == tmp_path / "uplink.jsonl"
    named = PARTY + 'uplink_log = "/var/log/up.jsonl"\n'
    assert party.load_config(write(tmp_path, named)).uplink_log == Path("/var/log/up.jsonl")


def test_a_policy_names_a_coordinator(tmp_path: Path) -> None:
    for uri, kind in (("spiffe://study/party/lab", BadInput), ("hub", BadIdentity)):
        text = policy.TEMPLATE.replace("spiffe://study/coordinator/hub", uri)
        with pytest.raises(kind, match=r"a\.toml: .*coordinator: "):
            policy.load_policy(write(tmp_path, text))
