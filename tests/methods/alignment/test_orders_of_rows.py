"""The order that tables follow: by an alignment or a roster, and refused where two differ."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.aligning import alignment_job, homes, people_of

from colonnade.client import JobOptions, PartyOffer
from colonnade.client.builder import build_job as author
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID, Bounds
from colonnade.data.schema import parse_schema
from colonnade.data.table import COARSE_NAME, FINE_NAME, Table, open_pair
from colonnade.methods.alignment.codec import run_name
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.alignment.normalise import IdColumn
from colonnade.methods.alignment.spec import NO_ROW
from colonnade.methods.groups import moved_columns
from colonnade.party.alignment.store import AlignmentFolder, EndedAlignment, read_outcome
from colonnade.party.data.columns import columns_for
from colonnade.party.data.ingest import IngestSummary, ingest
from colonnade.party.data.reading.sources import FileSource
from colonnade.party.methods.alignment.state import PartyState

SCHEMA = """\
id = "person"
[[feature]]
name = "age"
low = 0.0
high = 255.0
fill = 200.0
"""
KEY = "ab" * 32


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "colonnade.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("person,age\n  b ,20\na,10\nd,40\nc,\n")
    return path


def outcome_of(tmp_path: Path, rows: dict[str, int], kept: int) -> EndedAlignment:
    """Return what an alignment left at a party."""
    sides = homes(tmp_path / "homes", people_of(("hospital", "laboratory")))
    job = alignment_job(sides)
    assert isinstance(job.method, AlignmentJobSpec)
    spec = job.method.alignment
    ids = tuple(spec.ids.encode([person]) or b"" for person in rows)
    numbers = np.array(list(rows.values()), "<u4").tobytes()
    state = PartyState(run_name(spec), None, b"", n_rows=kept + 2, kept=kept, rows=numbers)
    return EndedAlignment(spec, state, ids, ("person",))


def ingested(source: Path, out: Path, **order: object) -> tuple[Table, IngestSummary]:
    schema = parse_schema(SCHEMA, origin="schema.toml")
    summary = ingest(schema, FileSource(source), out=out, **order)  # type: ignore[arg-type]
    return Table.open(out / COARSE_NAME), summary


def test_rows_follow_the_alignment_and_absent_people_are_zero_rows(
    tmp_path: Path, source: Path
) -> None:
    outcome = outcome_of(tmp_path, {"a": 4, "b": 1, "c": 2, "d": NO_ROW}, kept=6)
    plain, _ = ingested(source, tmp_path / "plain")
    aligned, summary = ingested(source, tmp_path / "data", alignment=outcome)
    b, a, _, c = plain.columns[0].tolist()  # by place in the source; c has the fill
    assert aligned.columns[0].tolist() == [0, b, c, 0, a, 0]
    fine = Table.open(tmp_path / "data" / FINE_NAME, grid=2**30).columns[0]
    assert [fine[at] for at in (0, 3, 5)] == [0, 0, 0]
    assert (summary.n_absent, summary.n_left_out) == (3, 1)
    assert summary.columns[0].n_missing == 1  # c's; not those who are absent
    header = aligned.header
    assert (header.alignment, header.n_absent, header.n_left_out) == (outcome.name, 3, 1)


def test_of_a_person_who_is_listed_twice_the_first_row_counts(tmp_path: Path) -> None:
    text = "id = 'person'\n[[feature]]\nname = 'age'\nlow = 0\nhigh = 100\n"
    outcome = outcome_of(tmp_path, {"a": 0, "b": 1}, kept=2)
    source = tmp_path / "people.csv"
    source.write_text("person,age\na,0\nb,50\n a,100\n")
    schema = parse_schema(text, origin="schema.toml")
    summary = ingest(schema, FileSource(source), out=tmp_path / "data", alignment=outcome)
    assert Table.open(tmp_path / "data" / COARSE_NAME).columns.tolist() == [[-GRID, 0]]
    assert summary.n_left_out == 1


def test_absent_people_are_zero_rows_under_tighter_bounds_too(tmp_path: Path, source: Path) -> None:
    # The middle of the declared bounds lies beyond these: clipped to them it would be their end.
    outcome = outcome_of(tmp_path, {"a": 4, "b": 1, "c": 2, "d": NO_ROW}, kept=6)
    ingested(source, tmp_path / "data", alignment=outcome)
    tight = columns_for(*open_pair(tmp_path / "data"), ["age"], [Bounds(0.0, 40.0)], None)
    assert [tight.features[0][at] for at in (0, 3, 5)] == [0, 0, 0]
    assert tight.features[0][4] == -tight.features[0][2] // 2  # 10 and 200 between 0 and 40


def test_a_person_who_vanishes_moves_two_columns_of_a_category(tmp_path: Path) -> None:
    source = tmp_path / "people.csv"
    source.write_text("person,ward\na,w1\nb,w5\nc,\n")
    levels = [f"w{at}" for at in range(8)]
    text = f'id = "person"\n[[feature]]\nname = "ward"\ntype = "category"\nlevels = {levels}\n'
    outcome = outcome_of(tmp_path, {"a": 0, "b": 1, "c": 2}, kept=4)
    schema = parse_schema(text, origin="schema.toml")
    ingest(schema, FileSource(source), out=tmp_path / "data", alignment=outcome)
    table = Table.open(tmp_path / "data" / COARSE_NAME)
    assert table.columns.shape == (len(levels), 4)
    present, absent = table.columns[:, :3], table.columns[:, 3:]
    moved = np.count_nonzero(present != absent, axis=0)
    assert moved.tolist() == [1, 1, 0]
    assert moved.max() <= moved_columns(table.names, table.groups) == 2


@pytest.mark.slow
def test_an_outcome_is_found_by_its_name_and_survives_its_file(
    tmp_path: Path, source: Path
) -> None:
    outcome = outcome_of(tmp_path, {"a": 0, "b": 1}, kept=2)
    folder = AlignmentFolder.beside(tmp_path / "data")
    folder.keep(outcome)
    path = folder.find(outcome.name[:8])
    assert read_outcome(path).by_id == outcome.by_id
    assert path.stat().st_mode & 0o077 == 0
    schema = tmp_path / "schema.toml"
    schema.write_text(SCHEMA)
    arguments = ["party", "ingest", "--schema", str(schema), "--out", str(tmp_path / "data")]
    done = run(*arguments, str(source), "--alignment", outcome.name[:8])
    assert done.returncode == 0, done.stderr
    assert "2 matched, 0 absent, 2 rows left out" in done.stdout
    path.write_bytes(path.read_bytes()[:-1])
    done = run(*arguments, str(source), "--alignment", str(path))
    assert done.returncode == 3
    assert "damaged" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("rows", [{"a": 0, "b": 2}, {"a": 1, "b": 1}], ids=["beyond", "twice"])
def test_an_outcome_with_rows_that_cannot_be_is_refused(
    tmp_path: Path, rows: dict[str, int]
) -> None:
    folder = AlignmentFolder.beside(tmp_path / "data")
    folder.keep(outcome_of(tmp_path, rows, kept=2))
    (path,) = folder.path.glob("*.alignment")
    with pytest.raises(BadInput, match="damaged"):
        read_outcome(path)


def roster(tmp_path: Path, *people: str) -> Path:
    path = tmp_path / f"roster {len(people)} {people[0]}"
    path.write_text("".join(f"{person}\n" for person in people))
    return path


def test_a_roster_with_a_key_names_its_order_and_nothing_else(tmp_path: Path, source: Path) -> None:
    key = tmp_path / "roster.key"
    key.write_text(KEY)
    names = []
    for number, people in enumerate((("a", "d"), ("d", "a"), ("a", "d"), ("a", "d", "x"))):
        agreed = roster(tmp_path, *people)
        table, summary = ingested(
            source, tmp_path / f"data {number}", roster=agreed, roster_key=key
        )
        assert summary.n_left_out == 2
        names.append(table.header.alignment)
    assert names[0] == names[2]
    assert len(set(names)) == 3
    key.write_text("cd" * 32)
    table, _ = ingested(
        source, tmp_path / "other key", roster=roster(tmp_path, "a", "d"), roster_key=key
    )
    assert table.header.alignment != names[0]  # without the key nobody can try rosters out
    table, _ = ingested(source, tmp_path / "no key", roster=roster(tmp_path, "a", "d"))
    assert table.header.alignment == ""


def test_rosters_written_in_two_ways_have_one_order_under_a_rule(
    tmp_path: Path, source: Path
) -> None:
    key = tmp_path / "roster.key"
    key.write_text(KEY)
    tables = [
        ingested(
            source,
            tmp_path / f"data {number}",
            roster=roster(tmp_path, *people),
            roster_key=key,
            id_rule=rule,
        )[0]
        for number, (people, rule) in enumerate(
            (
                (("A", "d"), IdColumn(fold_case=True)),
                ((" a", "D "), IdColumn(fold_case=True)),
                (("a", "d"), None),
            )
        )
    ]
    assert tables[0].header.alignment == tables[1].header.alignment == tables[2].header.alignment
    assert (tables[0].columns == tables[2].columns).all()
    with pytest.raises(BadInput, match=r"line 2 .*rule"):
        ingested(
            source, tmp_path / "o", roster=roster(tmp_path, "1", "a"), id_rule=IdColumn(number=True)
        )
    with pytest.raises(BadInput, match="repeat"):
        ingested(source, tmp_path / "o", roster=roster(tmp_path, "a", "a "), id_rule=IdColumn())


@pytest.mark.parametrize("header", ["person", "Person", '"person"', "patient_id"])
def test_a_header_line_in_a_roster_is_noticed(tmp_path: Path, source: Path, header: str) -> None:
    with pytest.raises(BadInput, match="header"):
        ingested(source, tmp_path / "data", roster=roster(tmp_path, header, "a", "d"))
    assert not (tmp_path / "data" / COARSE_NAME).exists()


def test_somebody_whose_id_looks_like_a_header_is_nobody_elses_mistake(tmp_path: Path) -> None:
    source = tmp_path / "people.csv"
    source.write_text("person,age\nid,20\na,10\n")
    table, _ = ingested(source, tmp_path / "data", roster=roster(tmp_path, "id", "a"))
    assert table.n_rows == 2


def offer(party: str, alignment: str) -> PartyOffer:
    return PartyOffer(
        party=party,
        attached=True,
        dataset="ab" * 16,
        population=1000,
        features={"x": Bounds(0.0, 1.0)},
        fills={"x": 0.5},
        label=("y", Bounds(0.0, 1.0)),
        cap_units=2**55,
        used_units=0,
        alignment=alignment,
    )


def test_a_job_of_parties_in_different_orders_is_refused_by_name() -> None:
    one, other = "roster-" + "a" * 64, "roster-" + "b" * 64
    with pytest.raises(BadInput, match=r"aaaaaaaaaaaa.*bbbb"):
        author([offer("hospital", one), offer("bank", other)], JobOptions(), target="y")
    with pytest.raises(BadInput, match="bank: no"):
        author([offer("hospital", one), offer("bank", "")], JobOptions(), target="y")
    job = author([offer("hospital", one), offer("bank", one)], JobOptions(), target="y")
    assert {member.alignment for member in job.members} == {one}
    mixed = (job.members[0], replace(job.members[1], alignment=other))
    with pytest.raises(ValueError, match="different orders"):
        replace(job, members=mixed)


@pytest.mark.slow
def test_a_policy_says_what_each_side_learns(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(
        "[[align]]\n"
        'coordinator = "spiffe://study/coordinator/hub"\n'
        'peers = ["bank"]\nmax_people = 10\n'
    )
    config = tmp_path / "party.toml"
    config.write_text(
        'coordinator = "hub:1"\ncredentials = "pki"\ndata = "data"\nledger = "ledger"\n'
        'policy = "policy.toml"\n[align]\nsource = "people.csv"\nid = ["person"]\n'
    )
    done = run("party", "policy", "--config", str(config))
    assert done.returncode == 0, done.stderr
    assert "may align with bank (union)" in done.stdout
    assert "who is where, exactly" in done.stdout
    told = json.loads(run("party", "policy", "--config", str(config), "--json").stdout)
    assert told["align"][0]["peers"] == ["bank"]
    config.write_text(config.read_text() + 'query = "SELECT 1"\n')
    done = run("party", "policy", "--config", str(config))
    assert done.returncode == 3
    assert "[align]" in done.stderr
