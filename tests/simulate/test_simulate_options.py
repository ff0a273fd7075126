"""Whose the rows and columns of a simulated federation are, as a person says."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colonnade.cli.main import main
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput, JobEnded
from colonnade.core.fixedpoint import GRID, Bounds
from colonnade.methods.problem import Loss
from colonnade.methods.sealed.claims import EVERYBODY, PEERS
from colonnade.simulate.admm.from_file import people_from
from colonnade.simulate.data.from_file import FileTable, deal_columns, read_table, sites_from
from colonnade.simulate.parties_option import MAX_PARTIES, parties_of
from colonnade.simulate.runs import privacy_lines
from colonnade.simulate.sites import SiteColumn

Output = pytest.CaptureFixture[str]
N_ROWS = 60


def table(clients: Sequence[int] | None = None) -> FileTable:
    def column(name: str, low: float) -> SiteColumn:
        return SiteColumn(name, Bounds(low, low + 100.0), low + np.arange(N_ROWS, dtype=float))

    features = tuple(column(name, 10.0 * place) for place, name in enumerate("abcd"))
    owners = None if clients is None else np.array(clients, np.int64)
    return FileTable(features, column("y", -7.0), ("note",), owners)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (None, ("hospital", "laboratory", "insurer")),
        (["2"], ("hospital", "laboratory")),
        (["bank=a,b", "shop=c"], {"bank": ["a", "b"], "shop": ["c"]}),
        (['bank="a, b",c'], {"bank": ["a, b", "c"]}),
        (["bank=a=b"], {"bank": ["a=b"]}),
    ],
)
def test_parties_are_a_number_or_named_with_columns(
    values: list[str] | None, found: object
) -> None:
    assert parties_of(values) == found


def test_parties_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "parties.toml"
    path.write_text('[parties]\nbank = ["a", "b c"]\nshop = ["d"]\n')
    assert parties_of([str(path)]) == {"bank": ["a", "b c"], "shop": ["d"]}


@pytest.mark.parametrize(
    "values", [["0"], [str(MAX_PARTIES + 1)], ["-1"], ["bank=a", "2"], ["bank=a", "bank=b"]]
)
def test_parties_that_are_none_are_refused(values: list[str]) -> None:
    with pytest.raises(BadArgument) as refused:
        parties_of(values)
    assert refused.value.parameter == "parties"


@pytest.mark.parametrize("text", ["", "[parties]\nbank = 3\n", "[parties]\nbank = []\n", "x = 1\n"])
def test_a_file_of_other_things_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "parties.toml").write_text(text)
    with pytest.raises(BadInput):
        parties_of([str(tmp_path / "parties.toml")])


@pytest.mark.parametrize("owner", [None, "shop"])
def test_columns_go_where_a_person_says(owner: str | None) -> None:
    bank, shop = sites_from(table(), {"bank": ["c", "a"], "shop": ["d"]}, owner=owner)
    assert [column.name for column in bank.features] == ["c", "a"]
    assert [column.name for column in shop.features] == ["d"]
    assert (bank.label is None) == (owner is not None)
    assert shop.label is not None


def test_columns_are_dealt_out_in_order_by_default() -> None:
    assert deal_columns(table(), ["p", "q"]) == {"p": ["a", "b"], "q": ["c", "d"]}
    with pytest.raises(BadInput):
        deal_columns(table(), list("pqrst"))


@pytest.mark.parametrize(
    "parties",
    [
        {"bank": ["a"], "shop": ["a"]},
        {"bank": ["a", "a"]},
        {"bank": ["a", "z"]},
        {"bank": ["a", "note"]},
        {"bank": ["a", "y"]},
        {"bank": ["a"], "shop": []},
        {"hub": ["a"]},
        {"logs": ["a"]},
    ],
    ids=str,
)
def test_columns_that_cannot_be_given_are_refused(parties: dict[str, list[str]]) -> None:
    with pytest.raises(BadInput):
        sites_from(table(), parties, owner=None)


def test_a_party_is_called_what_a_certificate_can_say() -> None:
    with pytest.raises(BadInput, match=r"party \.\./bank: .* lower-case"):
        sites_from(table(), {"../bank": ["a"]}, owner=None)


def test_a_folder_is_no_file_to_simulate(tmp_path: Path, capsys: Output) -> None:
    assert main(["simulate", "--data", str(tmp_path), "--target", "y"]) == 3
    assert "is a folder" in capsys.readouterr().err


def test_a_sealed_simulation_without_its_extra_ends_before_any_process_starts(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("colonnade.simulate.run.available", lambda: False)
    words = ["simulate", "--rows", "300", "--label-owner", "hospital", "--exchange", "sealed"]
    assert main([*words, "--keep", str(tmp_path / "kept"), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said == "colonnade: seal is not installed: pip install 'colonnade[sealed]'\n"
    assert not list((tmp_path / "kept").glob("*/*.toml"))


@pytest.mark.parametrize("premise", [EVERYBODY, PEERS])
def test_a_price_that_rests_on_peers_is_told_with_its_premise(premise: str) -> None:
    nothing = {"rho": 0.0, "epsilon": 0.0}
    joint = {"rho": 0.1, "epsilon": 2.0, "delta": 1e-6, "spent": 0.1, "spent_epsilon": 2.0}
    privacy = {
        "joint": joint | {"bounds": nothing, "job": joint},
        "parties": [joint | {"party": "hospital", "bounds": nothing, "job": joint}],
        "premise": premise,
        "bounds_note": "declared",
    }
    told = " ".join(privacy_lines(privacy))
    assert ("if all parties follow the protocol" in told) == (premise == PEERS)


def test_a_column_says_whose_each_row_is() -> None:
    owners = [row % 7 for row in range(N_ROWS)]
    dealt = people_from(table(owners), clients=3, hosts=2, held_out=11, seed=5)
    assert len(dealt.clients) == 7  # not the three that rows would be dealt out to
    assert dealt.held_out is not None
    assert dealt.held_out.label.size == 11
    # Column a is the number of the row, so rows can be followed to their owners.
    seen = []
    for client in dealt.clients:
        rows = np.rint((client.columns[0] / GRID + 1.0) * 50.0).astype(int)
        assert len({owners[row] for row in rows}) == 1
        seen += rows.tolist()
    held = np.rint((dealt.held_out.columns[0] / GRID + 1.0) * 50.0).astype(int)
    assert sorted([*seen, *held]) == list(range(N_ROWS))
    first, second = dealt.sites
    for site, count in ((first, 4), (second, 3)):
        assert site.clients is not None
        assert sorted(set(site.clients)) == list(range(count))
        whose = [owners[int(value)] for value in site.features[0].values]
        assert len(set(zip(site.clients.tolist(), whose, strict=True))) == count


def test_rows_are_dealt_out_where_no_column_says_whose_they_are() -> None:
    dealt = people_from(table(), clients=6, skewed=True)
    assert [client.label.size for client in dealt.clients] == [10] * 6
    spans = [int(client.label.max()) - int(client.label.min()) for client in dealt.clients]
    assert max(spans) - min(spans) <= 1  # ten neighbours each, but for rounding to the grid
    for clients in (0, N_ROWS + 1):
        with pytest.raises(BadArgument):
            people_from(table(), clients=clients)


def write(path: Path, client: Any) -> Path:
    rows = [f"{client(i)},{i % 7},{i % 5},{i % 11}" for i in range(N_ROWS)]
    path.write_text("\n".join(["who,a,b,y", *rows]) + "\n")
    return path


@pytest.mark.parametrize("client", [lambda i: i % 4, lambda i: f"p{i % 4}"], ids=["number", "text"])
def test_clients_have_any_names(tmp_path: Path, client: Any) -> None:
    path = write(tmp_path / "rows.csv", client)
    found = read_table(path, "y", loss=Loss.SQUARED, client_column="who")
    assert found.clients is not None
    assert found.clients.tolist() == [i % 4 for i in range(N_ROWS)]
    assert [column.name for column in found.features] == ["a", "b"]
    assert found.skipped == ()


@pytest.mark.parametrize(
    "options",
    [
        ["--client-column", "who"],
        ["--data", "rows.csv"],
        ["--data", "rows.csv", "--target", "y", "--client-column", "nobody"],
        ["--data", "gaps.csv", "--target", "y", "--client-column", "who"],
        ["--data", "rows.csv", "--target", "y", "--client-column", "who", "--clients", "4"],
        ["--data", "rows.csv", "--target", "y", "--features", "4"],
        ["--data", "rows.csv", "--target", "y", "--clients", "400"],
        ["--data", "rows.csv", "--target", "y", "--client-column", "who", "--hosts", "5"],
        ["--data", "rows.csv", "--target", "y", "--client-column", "who", "--sampled", "5"],
    ],
)
def test_clients_of_a_file_that_cannot_be_are_refused(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("rows.csv"), lambda i: i % 4)
    write(Path("gaps.csv"), lambda i: "" if i == 3 else i % 4)
    assert main(["simulate", "admm", *options]) == 3
    assert capsys.readouterr().err.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == ["gaps.csv", "rows.csv"]


def test_columns_are_given_to_parties_from_a_file_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise JobEnded("the job was reached")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("colonnade.simulate.run.run_job", stop)
    write(Path("rows.csv"), lambda i: i % 4)
    assert main(["simulate", "--parties", "bank=a"]) == 3
    capsys.readouterr()
    rows = ["simulate", "--data", "rows.csv", "--target", "y", "--bounds-share", "0"]
    assert main([*rows, "--parties", "bank=a", "shop=b", "--label-owner", "shop"]) == 8
    assert main([*rows, "--parties", "bank=a", "--parties", "shop=b", "--label-owner", "shop"]) == 8
    said = capsys.readouterr().err
    assert "of no party, left out: who\n" in said
    assert "2 parties" in said
