"""A client keeps one budget, however a source writes its id.

"7", "7.0" and " 7" once had three accounts, so that three clients could spend nine caps.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest
from support.hosts import (
    COLUMNS,
    PRICE,
    a_ledger,
    ask,
    client_job,
    ingest_rows,
    vault_on,
)

from colonnade.cli.main import main
from colonnade.core.errors import BadInput, NotBound
from colonnade.data.schema import CLIENT_IDS, parse_schema
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.export import export_lines, verify_export
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.job import job_id
from colonnade.party.data.binding import Comparison, bind, check_binding, claim, rows_of
from colonnade.party.data.client_ids import client_id
from colonnade.party.data.clients import TableClients
from colonnade.party.data.dataset import open_dataset
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.sources import QuerySource
from colonnade.wire.jobspec import job_to_bytes

# -- one form ------------------------------------------------------------------------------------

SAME = [
    ["7", " 7", "7 ", "7.0", "7.", "7.000", "007", "+7", "\t7", "\u00a07", "\uff17", "\u0667"],
    ["7", "\ufeff7", "7\u200b", "\u00ad7", "7e+0", "7E+00"],
    ["-3", "-3.0", "-003", " -3"],
    ["0", "-0", "0.0", "00", "+0"],
    ["ABC", "abc", "Abc ", "\uff21\uff22\uff23", "a\u200bbc"],
    ["M\u00fcller", "Mu\u0308ller", "M\u00dcLLER"],
    ["a b", "a  b", "a\tb", "a\u00a0b", " a b "],
    ["9007199254740993", "09007199254740993"],  # beyond floats, and exact
]


@pytest.mark.parametrize("spellings", SAME, ids=lambda each: ascii(each[0]))
def test_spellings_of_an_id_are_one_client(spellings: list[str]) -> None:
    assert len({client_id(each, "text") for each in spellings}) == 1
    assert client_id(spellings[0], "text") is not None


@pytest.mark.parametrize("one", ["7", "70", "7-0", "a", "A.", "12e5", "1200000", "ab", "7a"])
def test_other_ids_are_other_clients(one: str) -> None:
    others = {"7", "70", "7-0", "a", "A.", "12e5", "1200000", "ab", "7a"} - {one}
    assert client_id(one, "text") not in {client_id(other, "text") for other in others}


@pytest.mark.parametrize("raw", ["7.5", "1e-05", "1e+16", "9007199254740992.0", "1.5e+300"])
def test_a_number_that_is_no_whole_one_or_may_have_lost_digits_is_no_id(raw: str) -> None:
    assert client_id(raw, "text") is client_id(raw, "integer") is None


def test_the_rule_of_integers_has_nothing_but_integers() -> None:
    assert [client_id(raw, "integer") for raw in ("07", "7.0", "a7", "7e5")] == ["7", "7"] + [
        None
    ] * 2


def test_under_the_exact_rule_only_what_nobody_sees_is_left_out() -> None:
    seen = {client_id(raw, "exact") for raw in ("7", "007", "7.0", "a", "A")}
    assert len(seen) == 5
    assert client_id(" 7 ", "exact") == "7"
    assert client_id("Mu\u0308ller", "exact") == "M\u00fcller"
    assert client_id("7\u200b", "exact") is None


# -- ingest --------------------------------------------------------------------------------------


def ingested(folder: Path, clients: Sequence[object], rule: str = "") -> TableClients:
    ingest_rows(folder, clients, rule=rule)
    with open_dataset(folder) as dataset:
        assert dataset.clients is not None
        assert dataset.client_ids == rule or (rule, dataset.client_ids) == ("", "text")
        return dataset.clients


def test_nine_spellings_of_three_clients_are_three_accounts(tmp_path: Path) -> None:
    ids = ["7", "8", "9", "7.0", "8.0", "9.0", " 7", " 8", " 9"]
    summary = ingest_rows(tmp_path / "data", ids)
    assert (summary.n_clients, summary.n_respelled) == (3, 3)
    with open_dataset(tmp_path / "data") as dataset:
        clients = dataset.clients
    assert clients == TableClients.of(("7", "8", "9"), (3, 3, 3))
    ledger = a_ledger()
    later = ingested(tmp_path / "later", ["7.0", "8.0", "009"])
    assert later.accounts(ledger) == clients.accounts(ledger)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("BIGINT", "7, 8"),
        ("DOUBLE", "7.0, 8.0"),
        ("DECIMAL(9, 2)", "7, 8"),
        ("VARCHAR", "'7', ' 8'"),
    ],
)
def test_a_typed_column_gives_the_same_ids_as_text(tmp_path: Path, kind: str, values: str) -> None:
    query = f"SELECT CAST(unnest([{values}]) AS {kind}) AS who, 1 AS a, 2 AS b, 0 AS y"
    schema = parse_schema('client = "who"\n' + COLUMNS, origin="schema")
    ingest(schema, QuerySource(query), out=tmp_path / "data")
    with open_dataset(tmp_path / "data") as dataset:
        assert dataset.clients == TableClients.of(("7", "8"), (1, 1))


@pytest.mark.parametrize(
    ("kind", "value", "rule"),
    [
        ("BOOLEAN", "true", "text"),
        ("DATE", "DATE '2026-01-01'", "text"),
        ("TIMESTAMP", "TIMESTAMP '2026-01-01 00:00:00'", "text"),
        ("FLOAT", "7", "text"),
        ("DOUBLE", "7", "exact"),
        ("DECIMAL(9, 2)", "7", "exact"),
        ("DOUBLE", "7.5", "text"),
        ("DOUBLE", "CAST('nan' AS DOUBLE)", "text"),
        ("DOUBLE", "CAST('inf' AS DOUBLE)", "text"),
        ("VARCHAR", "'x'", "integer"),
        ("VARCHAR", "'  '", "text"),
        ("VARCHAR", "'nan'", "text"),
    ],
)
def test_what_is_written_in_many_ways_is_no_client(
    tmp_path: Path, kind: str, value: str, rule: str
) -> None:
    query = f"SELECT CAST({value} AS {kind}) AS who, 1 AS a, 2 AS b, 0 AS y"
    text = f'client = "who"\nclient_ids = "{rule}"\n{COLUMNS}'
    with pytest.raises(BadInput) as refused:
        ingest(parse_schema(text, origin="schema"), QuerySource(query), out=tmp_path / "data")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "data").exists()


def test_a_parquet_file_whose_ids_became_floats_keeps_its_clients(tmp_path: Path) -> None:
    # As pandas writes integers beside missing values.
    first = ingested(tmp_path / "first", [7, 8, 9])
    path = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        rows = "SELECT CAST(unnest([7, 8, 9]) AS DOUBLE) AS who, 1.0 AS a, 2.0 AS b, 0 AS y"
        connection.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    query = f"SELECT * FROM read_parquet('{path}')"
    schema = parse_schema('client = "who"\n' + COLUMNS, origin="schema")
    ingest(schema, QuerySource(query), out=tmp_path / "second")
    with open_dataset(tmp_path / "second") as dataset:
        assert dataset.clients == first


@pytest.mark.parametrize(
    "text", ['client_ids = "text"', 'client = "who"\nclient_ids = "loose"', "client_ids = 7"]
)
def test_a_rule_is_one_of_the_known_and_needs_clients(text: str) -> None:
    with pytest.raises(BadInput, match="client_ids"):
        parse_schema(f"{text}\n{COLUMNS}", origin="schema")


def test_the_rule_is_part_of_the_schema_and_of_the_table() -> None:
    digests = {
        parse_schema(f'client = "who"\nclient_ids = "{rule}"\n{COLUMNS}', origin="s").digest
        for rule in CLIENT_IDS
    }
    assert len(digests) == 3


# -- binding -------------------------------------------------------------------------------------


def use(folder: Path, ledger: Ledger) -> None:
    """Let every client pay for one answer."""
    with open_dataset(folder) as dataset:
        claim(rows_of(dataset), ledger)
        vault = vault_on(dataset, ledger)
        spec = job_to_bytes(client_job(dataset))
        assert vault.consider(spec).accepted
        vault.answer(job_id(spec), 1, ask(range(len(dataset.clients or ()))))


def bound(folder: Path, ledger: Ledger, *, force: bool = False) -> Comparison:
    with open_dataset(folder) as dataset:
        found = bind(
            rows_of(dataset), ledger, reason="spring", clients=dataset.clients, force=force
        )
        assert found is not None
        return found


def test_clients_that_have_other_names_now_are_noticed_though_the_rows_are_the_same(
    tmp_path: Path,
) -> None:
    ledger = a_ledger()
    ingest_rows(tmp_path / "data", ["p1", "p2", "p3"])
    use(tmp_path / "data", ledger)
    ingest_rows(tmp_path / "data", ["q1", "q2", "q3"])  # the same rows in the same order
    with open_dataset(tmp_path / "data") as dataset, pytest.raises(NotBound):
        check_binding(rows_of(dataset), ledger)
    with pytest.raises(NotBound, match=r"3 of 3.* 3 "):
        bound(tmp_path / "data", ledger)


def test_binding_counts_who_is_known_new_and_gone_and_refuses_if_most_are_new(
    tmp_path: Path,
) -> None:
    ledger = a_ledger()
    ingest_rows(tmp_path / "data", ["a", "b", "c", "d"])
    use(tmp_path / "data", ledger)
    ingest_rows(tmp_path / "data", ["a", "b", "x", "y"])  # two and two: not most
    assert bound(tmp_path / "data", ledger) == Comparison(known=2, new=2, vanished=2)
    ingest_rows(tmp_path / "data", ["a", "x", "y", "z"])
    head = ledger.head
    with pytest.raises(NotBound):
        bound(tmp_path / "data", ledger)
    assert ledger.head == head
    assert bound(tmp_path / "data", ledger, force=True) == Comparison(known=1, new=3, vanished=3)
    summary = verify_export(list(export_lines(ledger)))
    assert summary.bound is not None
    assert (summary.bound.forced, summary.bound.reason) == (True, "spring")


def test_clients_respelled_half_at_a_time_are_noticed_too(tmp_path: Path) -> None:
    # Each binding alone has as many known clients as new ones.
    ledger = a_ledger()
    ingest_rows(tmp_path / "data", ["a", "b", "c", "d"])
    use(tmp_path / "data", ledger)
    ingest_rows(tmp_path / "data", ["dev-a", "dev-b", "c", "d"])
    assert bound(tmp_path / "data", ledger) == Comparison(known=2, new=2, vanished=2)
    use(tmp_path / "data", ledger)
    ingest_rows(tmp_path / "data", ["dev-a", "dev-b", "dev-c", "dev-d"])
    head = ledger.head
    with pytest.raises(NotBound, match=r"4 .*4 "):
        bound(tmp_path / "data", ledger)
    assert ledger.head == head
    assert bound(tmp_path / "data", ledger, force=True) == Comparison(known=2, new=2, vanished=4)
    use(tmp_path / "data", ledger)
    # A person said that they are others: from here on they are counted anew.
    ingest_rows(tmp_path / "data", ["dev-a", "dev-b", "dev-c", "new"])
    assert bound(tmp_path / "data", ledger) == Comparison(known=3, new=1, vanished=5)
    ingest_rows(tmp_path / "data", ["dev-a", "dev-b", "new", "newer"])
    assert bound(tmp_path / "data", ledger).known == 2


def test_each_half_of_the_clients_cannot_have_another_name_in_its_turn(tmp_path: Path) -> None:
    # No extract has more new clients than known ones, nor more than the ledger began with; yet
    # after the last every client would have had two accounts.
    ledger = a_ledger()
    ingest_rows(tmp_path / "data", ["a", "b", "c", "d"])
    use(tmp_path / "data", ledger)
    ingest_rows(tmp_path / "data", ["dev-a", "dev-b", "c", "d"])
    bound(tmp_path / "data", ledger)
    use(tmp_path / "data", ledger)
    ingest_rows(tmp_path / "data", ["a", "b", "dev-c", "dev-d"])
    head = ledger.head
    with pytest.raises(NotBound):
        bound(tmp_path / "data", ledger)
    assert ledger.head == head


def test_a_ledger_that_nobody_spent_from_knows_nobody_and_refuses_nobody(tmp_path: Path) -> None:
    ledger = a_ledger()
    ingest_rows(tmp_path / "data", ["a", "b"])
    with open_dataset(tmp_path / "data") as dataset:
        claim(rows_of(dataset), ledger)
    ingest_rows(tmp_path / "data", ["c", "d"])
    assert bound(tmp_path / "data", ledger) == Comparison(known=0, new=2, vanished=0)


def test_another_rule_is_noticed_even_if_no_id_changes(tmp_path: Path) -> None:
    ledger = a_ledger()
    ingest_rows(tmp_path / "data", ["a", "b"])
    use(tmp_path / "data", ledger)
    ingest_rows(tmp_path / "data", ["a", "b"], rule="exact")
    with pytest.raises(NotBound, match="'exact'"):
        bound(tmp_path / "data", ledger)
    assert bound(tmp_path / "data", ledger, force=True).known == 2
    entry = ledger.state.bound
    assert entry is not None
    assert (entry.client_ids, entry.forced) == ("exact", True)


def test_the_command_binds_with_a_reason_and_says_who_is_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = LedgerFiles(tmp_path / "ledger")
    create_ledger(files, LedgerConfig("hospital", {"": 9 * PRICE}, simulation=True))
    ingest_rows(tmp_path / "data", ["a", "b", "c"])
    ledger = open_ledger(files)
    use(tmp_path / "data", ledger)
    ledger.close()
    (tmp_path / "party.toml").write_text(
        'coordinator = "127.0.0.1:1"\ninsecure = true\nidentity = "spiffe://s/party/hospital"\n'
        'coordinator_identity = "spiffe://s/coordinator/hub"\ndata = "data"\nledger = "ledger"\n'
        'policy = "policy.toml"\n'
    )
    given = ["party", "bind", "--config", str(tmp_path / "party.toml"), "--json"]
    ingest_rows(tmp_path / "data", ["A ", "x", "y"])
    assert main([*given, "--reason", "spring"]) == 4
    assert json.loads(capsys.readouterr().out)["error"] == "not_bound"
    assert main([*given, "--reason", " ", "--force"]) == 3
    capsys.readouterr()
    assert main([*given, "--reason", "two moved house", "--force"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["clients"] == {"known": 1, "new": 2, "vanished": 2}
    assert main(["ledger", "show", str(tmp_path / "ledger"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bound"]["reason"] == "two moved house"
    assert main(["ledger", "verify", str(tmp_path / "ledger")]) == 0
    assert "forced: two moved house" in capsys.readouterr().out


def test_a_respelled_client_cannot_spend_beyond_its_cap(tmp_path: Path) -> None:
    # The attack itself: every client is asked after each ingest, under another spelling.
    ledger = a_ledger(2 * PRICE)
    for spelling in (["7", "8", "9"], ["7.0", "8.0", "9.0"], [" 7", "08", "9"], ["007", "8", "+9"]):
        ingest_rows(tmp_path / "data", spelling)
        with open_dataset(tmp_path / "data") as dataset:
            claim(rows_of(dataset), ledger)  # the same clients and rows: nothing to bind
            vault = vault_on(dataset, ledger)
            spec = job_to_bytes(client_job(dataset))
            if vault.consider(spec).accepted:
                vault.answer(job_id(spec), 1, ask([0, 1, 2]))
            vault.close_job(job_id(spec))
    spent = list(ledger.state.spent.values())
    assert len(spent) == 3
    assert PRICE < max(spent) <= 2 * PRICE
