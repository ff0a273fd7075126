"""Which alignment `party ingest` follows where the command does not say."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.aligning import alignment_job, homes, people_of
from support.commands import handle

from colonnade.core.errors import BadInput
from colonnade.data.table import COARSE_NAME, Table
from colonnade.methods.alignment.codec import run_name
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.alignment.spec import AlignmentSpec, Extension
from colonnade.party.alignment.store import AlignmentFolder, EndedAlignment
from colonnade.party.config import TEMPLATE
from colonnade.party.methods.alignment.state import PartyState

ALIGN = '\n[align]\nsource = "people.csv"\nschema = "schema.toml"\nid = ["person"]\n'
SCHEMA = '[[feature]]\nname = "age"\nlow = 0\nhigh = 255\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("person,age\na,10\nb,20\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "party.toml").write_text(TEMPLATE + ALIGN)
    return tmp_path


@pytest.fixture
def spec(tmp_path: Path) -> AlignmentSpec:
    job = alignment_job(homes(tmp_path / "homes", people_of(("hospital", "laboratory"))))
    assert isinstance(job.method, AlignmentJobSpec)
    return job.method.alignment


def keep(folder: Path, spec: AlignmentSpec, *, n_rows: int) -> None:
    """Leave an alignment behind in which ``a`` has the last row and ``b`` the first."""
    ids = tuple(spec.ids.encode([person]) or b"" for person in ("a", "b"))
    rows = np.array([n_rows - 1, 0], "<u4").tobytes()
    state = PartyState(run_name(spec), None, b"", n_rows=n_rows, kept=n_rows, rows=rows)
    AlignmentFolder.beside(folder / "data").keep(EndedAlignment(spec, state, ids, ("person",)))


def extended(spec: AlignmentSpec) -> AlignmentSpec:
    return replace(spec, salt=b"\7" * 32, extends=Extension(run_name(spec), 3))


def ingest(folder: Path) -> int:
    return handle("party", "ingest", "--config", folder / "party.toml")


def rows(folder: Path) -> int:
    return Table.open(folder / "data" / COARSE_NAME).n_rows


def test_the_extension_is_followed_and_not_what_it_extends(
    folder: Path, spec: AlignmentSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, spec, n_rows=3)
    assert ingest(folder) == 0
    assert rows(folder) == 3
    keep(folder, extended(spec), n_rows=5)
    assert ingest(folder) == 0
    assert rows(folder) == 5
    name = run_name(extended(spec)).hex()[:12]
    assert f"rows in the order of alignment {name}\n" in capsys.readouterr().out


def test_between_two_alignments_the_command_does_not_choose(
    folder: Path, spec: AlignmentSpec
) -> None:
    other = replace(spec, salt=b"\7" * 32)
    for each in (spec, other):
        keep(folder, each, n_rows=3)
    with pytest.raises(BadInput, match="2 alignments of which none extends") as refused:
        ingest(folder)
    assert all(run_name(each).hex()[:12] in str(refused.value) for each in (spec, other))
    assert not (folder / "data" / COARSE_NAME).exists()


def test_a_table_in_the_order_of_its_source_is_called_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ingest(folder) == 0
    assert rows(folder) == 2
    assert "in the order of the source: there is no alignment yet" in capsys.readouterr().out
