"""A column that the policy hides takes no part in a hello: not its name, bounds or releases."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.hosts import COLUMNS, HUB, PARTY, a_ledger, ingest_rows, vault_on

from colonnade.core.fixedpoint import FINE_GRID, Bounds
from colonnade.data.schema import parse_schema
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.party.data.bounding.bounds import bought_bounds, buy_bounds
from colonnade.party.data.dataset import Dataset, open_dataset
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.sources import FileSource
from colonnade.party.policy import Allowance
from colonnade.pki.identity import Identity
from colonnade.privacy.accounting import MAX_UNITS, units_down
from colonnade.privacy.simulation import SeededNoise, ZeroNoise
from colonnade.server.engine.offers import bounds_to_use, check_offer
from colonnade.v1 import federation_pb2 as pb

ONLY_A = Allowance(HUB, ("moments",), ("a",), False, MAX_UNITS, 1000)
DECLARED = [-FINE_GRID, FINE_GRID]


@pytest.fixture
def dataset(tmp_path: Path) -> Iterator[Dataset]:
    ingest_rows(tmp_path / "data")
    with open_dataset(tmp_path / "data") as opened:
        yield opened


def buy(dataset: Dataset, ledger: Ledger, *names: str) -> dict[str, Bounds]:
    gate = Gate(ledger, ZeroNoise())
    bought = buy_bounds(dataset, ledger, gate, units=units_down(2.0), columns=names)
    return {c.name: b for c, b in zip(bought.columns, bought.tight, strict=True)}


def offer_of(dataset: Dataset, ledger: Ledger, *allowed: Allowance) -> pb.Offer:
    offer = vault_on(dataset, ledger, *allowed).hello().offer
    check_offer(PARTY, offer)
    return offer


@pytest.mark.parametrize(
    ("allowance", "features", "label"),
    [
        (ONLY_A, ["a"], ""),
        (replace(ONLY_A, features=("b",)), ["b"], ""),
        (replace(ONLY_A, label=True), ["a"], "y"),
        (replace(ONLY_A, features=("*",)), ["a", "b"], ""),
        (replace(ONLY_A, features=("A", "c")), [], ""),
    ],
)
def test_a_hello_offers_the_features_and_the_label_that_are_allowed(
    dataset: Dataset, allowance: Allowance, features: list[str], label: str
) -> None:
    offer = offer_of(dataset, a_ledger(), allowance)
    assert [each.name for each in offer.features] == features
    assert offer.label.name == label
    hidden = {"a", "b", "y"} - {*features, label}
    assert not {each.name for each in (*offer.features, offer.label)} & hidden


def test_what_another_coordinator_may_ask_for_is_not_offered_to_this_one(dataset: Dataset) -> None:
    other = replace(ONLY_A, coordinator=Identity("study", "coordinator", "b"), features=("b",))
    offer = offer_of(dataset, a_ledger(), ONLY_A, other)
    assert [each.name for each in offer.features] == ["a"]


@pytest.mark.parametrize("bought", [("b",), ("y",), ("b", "y")])
def test_bounds_of_hidden_columns_leave_the_hello_as_it_was(
    dataset: Dataset, bought: tuple[str, ...]
) -> None:
    ledger = a_ledger()
    before = offer_of(dataset, ledger, ONLY_A)
    assert buy(dataset, ledger, *bought)
    after = offer_of(dataset, ledger, ONLY_A)
    assert after.spent_units > 0  # prices are public
    after.spent_units = before.spent_units
    assert after.SerializeToString() == before.SerializeToString()


def test_what_is_told_of_a_column_does_not_depend_on_hidden_ones(tmp_path: Path) -> None:
    # Two tables that differ in b and y alone, and the same noise: a hello must not tell them apart.
    ingest_rows(tmp_path / "one")
    lines = [line.split(",") for line in (tmp_path / "one.csv").read_text().splitlines()]
    other = ["who,a,b,y", *(f"{who},{a},8.5,1" for who, a, _, _ in lines[1:])]
    (tmp_path / "two.csv").write_text("\n".join(other) + "\n")
    schema = parse_schema(COLUMNS, origin="schema")
    ingest(schema, FileSource(tmp_path / "two.csv"), out=tmp_path / "two")
    told = []
    for name in ("one", "two"):
        ledger = a_ledger()
        with open_dataset(tmp_path / name) as dataset:
            gate = Gate(ledger, SeededNoise(3))
            buy_bounds(dataset, ledger, gate, units=units_down(2.0), label=True)
            offer = offer_of(dataset, ledger, ONLY_A)
            offer.dataset = ""  # random
            told.append(offer.SerializeToString())
            assert len(offer.tight) == 2
    assert told[0] == told[1]


def test_a_coordinator_gets_the_bounds_that_the_party_bought_and_the_declared_ones_else(
    dataset: Dataset,
) -> None:
    ledger = a_ledger()
    assert not offer_of(dataset, ledger).tight
    tight = buy(dataset, ledger, "b")
    offer = offer_of(dataset, ledger)
    assert [*offer.tight[:2], *offer.tight[4:]] == DECLARED * 2  # of a, and of the label
    declared = {"a": Bounds(-9.0, 9.0), "b": Bounds(-9.0, 9.0), "y": Bounds(0.0, 1.0)}
    assert bounds_to_use(offer) == declared | tight
    more = buy(dataset, ledger, "a", "y")
    assert bounds_to_use(offer_of(dataset, ledger)) == declared | tight | more
    assert bought_bounds(dataset, ledger) == tight | more


def test_purged_bounds_are_not_told(dataset: Dataset) -> None:
    ledger = a_ledger()
    buy(dataset, ledger, "a")
    ledger.purge(next(iter(ledger.state.stored)))
    assert not offer_of(dataset, ledger).tight


def test_an_allowance_that_ended_still_names_nothing_hidden(dataset: Dataset) -> None:
    ended = replace(ONLY_A, until=dt.date(2020, 1, 1))
    assert [each.name for each in offer_of(dataset, a_ledger(), ended).features] == ["a"]
