"""Whom a party lists: its file is read as its schema says that it is written."""

from pathlib import Path

import pytest

from colonnade.core.errors import BadInput
from colonnade.methods.alignment.normalise import IdColumn, IdRule, Repeated
from colonnade.party.config import load_config
from colonnade.party.policy_file import load_policy

SCHEMA = 'delimiter = ";"\ndecimal = ","\n[[feature]]\nname = "age"\nlow = 0\nhigh = 99\n'
ROWS = "Patient;age\nÅsa;1,5\nBo;2,5\n"
PARTY = 'coordinator = "127.0.0.1:1"\ncredentials = "p"\ndata = "d"\nledger = "l"\npolicy = "p"\n'
RULE = IdRule((IdColumn(),), Repeated.REFUSE)


def configured(folder: Path, align: str) -> Path:
    path = folder / "party.toml"
    path.write_text(f'{PARTY}\n[align]\nid = ["Patient"]\nsource = "people.csv"\n{align}')
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_people_are_read_in_the_dialect_of_the_schema(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "people.csv").write_bytes(ROWS.encode(encoding))
    (tmp_path / "schema.toml").write_text(SCHEMA)
    config = load_config(configured(tmp_path, 'schema = "schema.toml"\n'))
    assert config.align is not None
    people = config.align.people(RULE)
    assert {*people.ids} == {RULE.encode([name]) for name in ("Åsa", "Bo")}


def test_without_a_schema_the_setting_that_helps_is_named(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(ROWS, "utf-8")
    config = load_config(configured(tmp_path, ""))
    assert config.align is not None
    with pytest.raises(BadInput, match='delimiter = ";"'):
        config.align.people(RULE)


def test_columns_of_a_table_leave_the_alignments_of_a_policy(tmp_path: Path) -> None:
    hub = 'coordinator = "spiffe://study/coordinator/hub"\n'
    path = tmp_path / "policy.toml"
    path.write_text(
        f'[[allow]]\n{hub}kinds = ["moments"]\nfeatures = ["ward"]\nmax_rho = 1.0\nmax_rounds = 9\n'
        f'[[align]]\n{hub}peers = ["*"]\nmax_people = 100\n'
    )
    policy = load_policy(path)
    spread = policy.with_columns({"ward": ["ward=a", "ward=b"]})
    assert spread.allowances[0].features == ("ward=a", "ward=b")
    widest = spread.widest_alignment(spread.alignments[0].coordinator)
    assert widest is not None
    assert widest.max_people == 100
