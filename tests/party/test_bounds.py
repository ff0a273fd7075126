"""Dataset versions, bounds bought through a real ledger, and columns under a job's bounds."""

import json
import re
import shutil
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.ledgers import new_ledger

from colonnade.cli.main import main
from colonnade.core.errors import (
    BadInput,
    BudgetExceeded,
    JobClosed,
    ReleasePurged,
    RequestConflict,
)
from colonnade.core.fixedpoint import FINE_GRID, GRID, Bounds, quantise
from colonnade.data.requantise import requantise
from colonnade.data.schema import Column, Schema
from colonnade.data.table import COARSE_NAME, FINE_NAME, Table, TableWriter, open_pair
from colonnade.data.table_header import TableColumn, TableHeader
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate, Step
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.bounds import STEPS, QuantilePlan, tight_bounds
from colonnade.party.data.binding import bind, rows_of
from colonnade.party.data.bounding import bounds as module
from colonnade.party.data.bounding.bounds import BoughtBounds, bought_bounds, buy_bounds
from colonnade.party.data.bounding.purchases import Purchase
from colonnade.party.data.columns import HeldColumns, columns_for, version_of
from colonnade.party.data.dataset import open_dataset
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.sources import FileSource
from colonnade.privacy.accounting import RHO_UNIT, rho_from_units, units_down
from colonnade.privacy.mechanisms import record_of
from colonnade.privacy.sampling import OsNoise
from colonnade.privacy.simulation import SeededNoise, ZeroNoise

N_ROWS = 2000
PRICE = units_down(0.2)
NAMES = ("age", "income", "rare")


def column(name: str, low: float, high: float) -> Column:
    return Column(name, column=name, bounds=Bounds(low, high), fill=low)


SCHEMA = Schema(
    features=(column("age", 0.0, 1000.0), column("income", -1e9, 1e9), column("rare", 0.0, 1.0)),
    label=column("y", -100.0, 100.0),
)


def write_rows(path: Path, *, seed: int = 1) -> Path:
    draw = np.random.default_rng(seed)
    values = [
        draw.normal(50.0, 10.0, N_ROWS),
        draw.lognormal(10.0, 1.0, N_ROWS),
        (draw.random(N_ROWS) < 0.01) * 1.0,
        draw.normal(size=N_ROWS),
    ]
    lines = [",".join(map(str, row)) for row in zip(*values, strict=True)]
    path.write_text("\n".join(["age,income,rare,y", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bounds")
    ingest(SCHEMA, FileSource(write_rows(folder / "x.csv")), out=folder / "data")
    return folder / "data"


@pytest.fixture
def data(ingested: Path, tmp_path: Path) -> Path:
    """The same table, in a folder of its own."""
    return shutil.copytree(ingested, tmp_path / "data")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return new_ledger("memory", tmp_path, simulation=True)


def buy(
    folder: Path,
    ledger: Ledger,
    *,
    units: int = PRICE,
    label: bool = False,
    seed: int | None = None,
) -> BoughtBounds:
    noise = ZeroNoise() if seed is None else SeededNoise(seed)
    return buy_with(Gate(ledger, noise), folder, ledger, units=units, label=label)


def buy_with(
    gate: Gate,
    folder: Path,
    ledger: Ledger,
    *,
    units: int = PRICE,
    columns: Sequence[str] | None = None,
    label: bool = False,
) -> BoughtBounds:
    with open_dataset(folder) as dataset:
        return buy_bounds(dataset, ledger, gate, units=units, columns=columns, label=label)


def bought_in(folder: Path, ledger: Ledger) -> dict[str, Bounds]:
    with open_dataset(folder) as dataset:
        return bought_bounds(dataset, ledger)


def dataset_version(folder: Path) -> str:
    return version_of(Table.open(folder / COARSE_NAME))


def columns(
    folder: Path,
    names: Sequence[str],
    bounds: Sequence[Bounds],
    label: tuple[str, Bounds] | None = None,
) -> HeldColumns:
    return columns_for(*open_pair(folder), names, bounds, label)


def no_reading(*_: object) -> None:
    raise AssertionError("the table was read")


# -- versions --------------------------------------------------------------------------------------


def test_every_ingest_makes_a_version_of_its_own_even_of_the_same_rows(tmp_path: Path) -> None:
    source = FileSource(write_rows(tmp_path / "x.csv"))
    seen = set()
    for _ in range(3):
        ingest(SCHEMA, source, out=tmp_path / "data")
        version = dataset_version(tmp_path / "data")
        assert re.fullmatch("[0-9a-f]{32}", version)
        seen.add(version)
        coarse, fine = open_pair(tmp_path / "data")
        assert {coarse.header.dataset_version, fine.header.dataset_version} == {version}
    assert len(seen) == 3


def test_an_ingest_that_is_killed_between_its_tables_leaves_no_usable_mixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, data = FileSource(write_rows(tmp_path / "x.csv")), tmp_path / "data"
    # A column of missing values is zeros under any bounds: the digests of the two tables agree.
    (tmp_path / "x.csv").write_text("a\nNA\nNA\n")
    ingest(Schema(features=(Column("a", "a", Bounds(0.0, 2.0), 1.0),)), source, out=data)
    before = dataset_version(data)

    def die(self: TableWriter) -> None:
        if self._path.name == COARSE_NAME:
            raise KeyboardInterrupt
        real(self)

    real = TableWriter.publish
    monkeypatch.setattr(TableWriter, "publish", die)
    with pytest.raises(KeyboardInterrupt):
        ingest(Schema(features=(Column("a", "a", Bounds(0.0, 8.0), 4.0),)), source, out=data)
    assert dataset_version(data) == before
    with pytest.raises(BadInput, match="different ingests"):
        open_pair(data)
    with pytest.raises(BadInput, match="different ingests"):
        columns(data, ["a"], [Bounds(0.0, 1.0)])


def write_table(folder: Path, names: Sequence[str], n_rows: int, *, version: str) -> None:
    """Write a pair of tables of uniform features without ingest."""
    columns = tuple(TableColumn(name, "feature", Bounds(-1.0, 1.0), 0.0) for name in names)
    headers = [
        TableHeader("ab" * 32, n_rows, columns=columns, grid=grid, dataset_version=version)
        for grid in (FINE_GRID, GRID)
    ]
    draw = np.random.default_rng(0)
    halves = np.arange(1, 200, 2) + 0.5  # in steps of the coarse grid
    folder.mkdir()
    with (
        TableWriter(folder / FINE_NAME, headers[0]) as fine,
        TableWriter(folder / COARSE_NAME, headers[1]) as coarse,
    ):
        for _ in names:
            values = draw.uniform(-1.0, 1.0, n_rows)
            # Just below the middle of a step: rounded on the fine grid first, they come out higher.
            values[: halves.size] = halves / GRID - 1e-13
            fine.append(quantise(values, Bounds(-1.0, 1.0), grid=FINE_GRID))
            coarse.append(quantise(values, Bounds(-1.0, 1.0), grid=GRID))
        coarse.seal(fine.seal())
        fine.publish()
        coarse.publish()


def test_a_table_without_version_says_to_ingest_again(tmp_path: Path, ledger: Ledger) -> None:
    write_table(tmp_path / "old", ["a"], 1000, version="")
    for use in (
        lambda: dataset_version(tmp_path / "old"),
        lambda: buy(tmp_path / "old", ledger),
        lambda: bought_in(tmp_path / "old", ledger),
    ):
        with pytest.raises(BadInput, match="versions"):
            use()


@pytest.mark.parametrize("version", ["x" * 32, "0" * 31, "0" * 33, "A" * 32, "0" * 32 + "\n"])
def test_a_version_is_sixteen_bytes_in_hexadecimal(version: str) -> None:
    header = TableHeader("ab" * 32, 5, columns=(TableColumn("a", "feature", Bounds(0, 1), 0.0),))
    with pytest.raises(ValueError, match="32 hex"):
        replace(header, dataset_version=version)


# -- buying ----------------------------------------------------------------------------------------


def test_what_is_bought_is_tight_within_the_declared_bounds(data: Path, ledger: Ledger) -> None:
    bought = buy(data, ledger, label=True, seed=5)
    assert [c.name for c in bought.columns] == [*NAMES, "y"]
    # Quantiles of normal(50, 10) and lognormal(10, 1), widened by half their distance. The noise
    # of a count, 28, moves the level 0.05 by at most 4 * 28 / 2000, to where the quantiles are
    # 10 % to 60 % further out or in; the loosest of these tolerances covers that.
    age, income, rare, label = bought.tight
    assert age.low == pytest.approx(50 - 32.9, abs=25)
    assert age.high == pytest.approx(50 + 32.9, abs=25)
    assert income.high == pytest.approx(1.7e5, rel=0.7)
    assert income.low > -2e5
    assert rare == Bounds(0.0, 1.0)
    assert label.high - label.low == pytest.approx(6.58, rel=0.5)


def test_the_price_is_the_formula_and_all_that_is_spent(data: Path, ledger: Ledger) -> None:
    bought = buy(data, ledger, label=True)
    (sigma2,) = {
        int(record_of(ledger.state.charges[r.key].mechanism)["sigma2"]) for r in bought.releases
    }
    formula = STEPS * 2 * 4 / (2 * sigma2)
    assert rho_from_units(bought.price) == pytest.approx(formula, rel=1e-12)
    assert PRICE * 0.98 < bought.price <= PRICE
    assert ledger.budget().spent == bought.price
    assert ledger.state.reserved == {"": 0}
    job = f"dataset-{dataset_version(data)}-0..3"  # which names the columns by their places
    keys = [ReleaseKey(job, step, "bounds") for step in range(20)]
    assert [release.key for release in bought.releases] == keys


def test_bounds_are_bought_once_for_a_version(
    data: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert bought_in(data, ledger) == {}
    first = buy(data, ledger)
    head = ledger.head
    with monkeypatch.context() as patch:
        patch.setattr(module, "count_rows", no_reading)
        for units in (PRICE, PRICE // 2, 10**18):
            assert buy(data, ledger, units=units) == first
    assert ledger.head == head
    assert bought_in(data, ledger) == dict(zip(NAMES, first.tight, strict=True))
    ingest(SCHEMA, FileSource(write_rows(tmp_path / "x.csv", seed=2)), out=data)
    assert bought_in(data, ledger) == {}
    with open_dataset(data) as dataset:
        bind(rows_of(dataset), ledger, reason="a new extract")
    second = buy(data, ledger)
    assert second.tight != first.tight
    assert ledger.budget().spent == 2 * first.price


def test_other_columns_are_bought_later_and_the_first_are_not_paid_for_again(
    data: Path, ledger: Ledger
) -> None:
    gate = Gate(ledger, SeededNoise(1))
    first = buy_with(gate, data, ledger, columns=["rare", "age"])
    assert [each.name for each in first.columns] == ["age", "rare"]  # in the order of the table
    assert list(bought_in(data, ledger)) == ["age", "rare"]
    spent = ledger.budget().spent
    both = buy_with(gate, data, ledger, label=True)
    assert [each.name for each in both.columns] == [*NAMES, "y"]
    assert (both.tight[0], both.tight[2]) == first.tight
    # Two columns of 2 levels each, 20 steps: 20 * 4 / (2 sigma2) once more, and no more.
    added = ledger.budget().spent - spent
    sigma2 = int(record_of(ledger.state.charges[both.releases[-1].key].mechanism)["sigma2"])
    assert rho_from_units(added) == pytest.approx(20 * 4 / (2 * sigma2), rel=1e-12)
    assert both.price == spent + added
    assert buy_with(gate, data, ledger, columns=["income"]).tight == both.tight[1:2]
    assert ledger.budget().spent == spent + added


@pytest.mark.parametrize("asked", [["age", "income"], ["y"], ["age", "rare"], ["rare", "y"]])
def test_bounds_of_some_columns_are_those_of_an_exact_count(
    data: Path, ledger: Ledger, asked: list[str]
) -> None:
    # Without noise a column's bounds do not depend on what else is bought, or when.
    other = shutil.copytree(data, data.parent / "other")
    whole = buy(other, new_ledger("memory", data, simulation=True), label=True)
    alone = buy_with(Gate(ledger, ZeroNoise()), data, ledger, columns=asked)
    expected = {c.name: b for c, b in zip(whole.columns, whole.tight, strict=True)}
    assert list(alone.tight) == [expected[c.name] for c in alone.columns]
    assert {c.name for c in alone.columns} == {*asked}


def test_columns_that_are_not_there_or_none_are_refused(data: Path, ledger: Ledger) -> None:
    head = ledger.head
    for names in (["age", "height"], [], [""]):
        with pytest.raises(BadInput):
            buy_with(Gate(ledger, ZeroNoise()), data, ledger, columns=names)
    assert ledger.head == head


def test_a_coordinator_gets_the_same_bounds_from_names_rows_and_bytes(
    data: Path, ledger: Ledger
) -> None:
    bought = buy(data, ledger, seed=3)
    declared = [feature.bounds for feature in SCHEMA.features]
    plan, bodies = QuantilePlan(3, N_ROWS), [release.body for release in bought.releases]
    sigma2 = plan.mechanism(bought.price).sigma2
    assert tight_bounds(declared, plan, bodies, sigma2) == bought.tight
    assert {len(body) for body in bodies} == {plan.n_bytes} == {9}  # 6 counts of 11 bits


def test_a_price_above_what_is_left_is_refused_before_anything_is_read(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = new_ledger("memory", tmp_path, simulation=True, caps={"": PRICE - PRICE // 10})
    monkeypatch.setattr(module, "count_rows", no_reading)
    head = ledger.head
    with pytest.raises(BudgetExceeded, match=r"rho 0\.18"):
        buy(data, ledger)
    assert ledger.head == head


def test_a_price_that_buys_only_noise_is_refused_and_the_least_one_named(
    data: Path, ledger: Ledger
) -> None:
    least = QuantilePlan(3, N_ROWS).least_units
    head = ledger.head
    for units in (1, 19, least - 1):
        with pytest.raises(
            BadInput, match=rf"at least rho {rho_from_units(least):.4g} \(epsilon .* at delta 1e-6"
        ):
            buy(data, ledger, units=units)
    assert ledger.head == head
    assert buy(data, ledger, units=least).price <= least


def test_a_label_that_is_not_there_is_refused(tmp_path: Path, ledger: Ledger) -> None:
    write_table(tmp_path / "plain", ["a"], 1000, version="0" * 32)
    with pytest.raises(BadInput, match="no label"):
        buy(tmp_path / "plain", ledger, label=True)


class Killed(BaseException):
    """The process ends here."""


def killer(at: Step, after: int) -> Callable[[Step], None]:
    """Return a hook that ends the process at the ``after``-th time of ``at``."""
    seen = 0

    def hook(step: Step) -> None:
        nonlocal seen
        seen += step is at
        if step is at and seen == after + 1:
            raise Killed

    return hook


@pytest.mark.parametrize("at", Step)
@pytest.mark.parametrize("after", [0, 7, 19])
def test_a_killed_purchase_goes_on_without_a_second_charge(
    data: Path, tmp_path: Path, at: Step, after: int
) -> None:
    other = shutil.copytree(data, tmp_path / "other")
    whole = buy(other, new_ledger("memory", tmp_path, simulation=True))
    ledger = new_ledger("sqlite", tmp_path, simulation=True)
    gate = Gate(ledger, ZeroNoise(), at=killer(at, after))
    with pytest.raises(Killed):
        buy_with(gate, data, ledger)
    assert ledger.state.reserved[""] + ledger.budget().spent == whole.price
    seen = [ledger.stored(key) for key in ledger.state.stored]
    assert len(seen) == after + (at is Step.STORED)
    ledger.close()
    ledger = open_ledger(LedgerFiles(tmp_path / "ledger"))
    bought = buy(data, ledger)
    assert (bought.tight, bought.price) == (whole.tight, whole.price)
    replayed = [release.body for release in seen if release is not None]
    assert [release.body for release in bought.releases][: len(seen)] == replayed
    assert ledger.budget().spent == whole.price
    assert ledger.state.reserved[""] == 0
    ledger.close()


def test_a_purchase_killed_before_it_is_closed_is_closed_when_asked_again(
    data: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(job: str) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "close_job", die)
        with pytest.raises(Killed):
            buy(data, ledger)
    job = Purchase(dataset_version(data), (0, 1, 2)).job
    assert job not in ledger.state.closed
    buy(data, ledger)
    assert job in ledger.state.closed


def test_a_killed_purchase_is_finished_at_its_own_price_only(data: Path, ledger: Ledger) -> None:
    gate = Gate(ledger, ZeroNoise(), at=killer(Step.STORED, 3))
    with pytest.raises(Killed):
        buy_with(gate, data, ledger)
    assert bought_in(data, ledger) == {}
    with pytest.raises(RequestConflict, match="interrupted") as refused:
        buy(data, ledger, units=2 * PRICE)
    for others in (["age"], [*NAMES, "y"]):
        with pytest.raises(RequestConflict, match="age,income,rare"):
            buy_with(Gate(ledger, ZeroNoise()), data, ledger, columns=others)
    told = re.search(r"rho ([0-9.e-]+)", str(refused.value))
    assert told is not None
    finished = buy(data, ledger, units=units_down(float(told[1])))
    assert ledger.budget().spent == finished.price


def test_purged_bounds_are_not_drawn_again(data: Path, ledger: Ledger) -> None:
    bought = buy(data, ledger)
    ledger.purge(bought.releases[4].key)
    for names in (None, ["age"]):
        with pytest.raises(ReleasePurged):
            buy_with(Gate(ledger, ZeroNoise()), data, ledger, columns=names)
    assert bought_in(data, ledger) == {}  # the declared ones remain
    assert ledger.budget().spent == bought.price


def test_bounds_of_a_replaced_ledger_are_not_bought_twice_for_a_version(
    data: Path, tmp_path: Path
) -> None:
    closed = frozenset({Purchase(dataset_version(data), (0, 2)).job})
    ledger = new_ledger("memory", tmp_path, simulation=True, closed=closed)
    with pytest.raises(JobClosed):
        buy(data, ledger)


# -- columns of a job ------------------------------------------------------------------------------


def mapped_from(array: np.ndarray[tuple[int, ...], np.dtype[np.int16]], path: Path | None) -> bool:
    """Return whether ``array`` is a view of the file at ``path``, or of one without a name."""
    base: object = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    while isinstance(base, np.memmap) and isinstance(base.base, np.memmap):
        base = base.base
    if path is None:
        return isinstance(base, np.memmap) and base.filename is None
    return isinstance(base, np.memmap) and Path(str(base.filename)) == path.resolve()


def test_columns_are_the_fine_copy_quantised_again_bit_for_bit(data: Path) -> None:
    wanted = {"income": Bounds(-10.0, 1e5), "age": Bounds(40.0, 60.0)}
    label = Bounds(-0.5, 250.0)
    found = columns(data, list(wanted), list(wanted.values()), ("y", label))
    _, fine = open_pair(data)
    declared = {c.name: c.bounds for c in fine.header.columns}
    assert fine.label is not None
    assert found.label is not None
    for row, (name, bounds) in zip(found.features, wanted.items(), strict=True):
        values = fine.columns[fine.names.index(name)]
        again = requantise(values, declared=declared[name], tight=bounds)
        assert (row == again).all()
        assert np.abs(row).max() == GRID  # some were clipped
    assert (found.label == requantise(fine.label, declared=declared["y"], tight=label)).all()
    assert found.features.dtype == found.label.dtype == np.int16
    assert found.features.shape == (2, N_ROWS)


def test_a_column_does_not_depend_on_what_else_is_asked_for(data: Path) -> None:
    coarse, _ = open_pair(data)
    tight, (age, income, _) = Bounds(40.0, 60.0), coarse.bounds
    alone = columns(data, ["age"], [tight]).features[0]
    found = columns(data, ["income", "age"], [income, tight], ("y", Bounds(-100.0, 100.0)))
    assert (found.features[1] == alone).all()
    assert (found.features[0] == coarse.columns[1]).all()  # under its declared bounds
    assert coarse.label is not None
    assert found.label is not None
    assert (found.label == coarse.label).all()
    swapped = columns(data, ["income", "age"], [income, age]).features
    assert (swapped == coarse.columns[[1, 0]]).all()


def test_a_column_under_its_declared_bounds_is_the_tables_own_beside_others(
    tmp_path: Path,
) -> None:
    write_table(tmp_path / "ties", ["a", "b"], 1000, version="0" * 32)
    coarse, fine = open_pair(tmp_path / "ties")
    declared = coarse.bounds[0]
    again = requantise(fine.columns[0], declared=declared, tight=declared)
    assert (again != coarse.columns[0]).any()  # quantised twice is not the same
    found = columns(tmp_path / "ties", ["a", "b"], [declared, Bounds(0.0, 1.0)])
    assert (found.features[0] == coarse.columns[0]).all()


def test_a_label_under_other_bounds_is_quantised_again_though_the_features_are_not(
    data: Path,
) -> None:
    coarse, fine = open_pair(data)
    tight = Bounds(-1.0, 1.0)
    found = columns(data, NAMES, coarse.bounds, ("y", tight))
    assert fine.label is not None
    again = requantise(fine.label, declared=Bounds(-100.0, 100.0), tight=tight)
    assert found.label is not None
    assert (found.label == again).all()
    assert (found.features == coarse.columns).all()


@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("with_label", [False, True])
def test_declared_bounds_in_order_map_the_table_itself(
    data: Path, n_features: int, with_label: bool
) -> None:
    coarse, _ = open_pair(data)
    label = ("y", Bounds(-100.0, 100.0)) if with_label else None
    found = columns(data, NAMES[:n_features], coarse.bounds[:n_features], label)
    assert mapped_from(found.features, data / COARSE_NAME)
    assert (found.features == coarse.columns[:n_features]).all()
    assert (found.label is not None) == with_label
    if found.label is not None:
        assert mapped_from(found.label, data / COARSE_NAME)
        assert (found.label == coarse.label).all()


def test_columns_that_are_made_leave_no_file_and_cannot_be_written(data: Path) -> None:
    before = sorted(data.iterdir())
    found = columns(data, NAMES[:2], [Bounds(0.0, 90.0), Bounds(0.0, 1e6)])
    assert sorted(data.iterdir()) == before
    assert mapped_from(found.features, None)
    assert not found.features.flags.writeable
    assert all(row.ctypes.data % 64 == 0 for row in found.features)


@pytest.mark.parametrize(
    ("names", "label", "said"),
    [
        (["age", "height"], None, "'height'"),
        (["y"], None, "feature 'y'"),
        (["age"], "age", "label 'age'"),
        (["age", "age"], None, "twice"),
        ([], None, "one feature"),
    ],
)
def test_columns_that_are_not_there_are_named(
    data: Path, names: list[str], label: str | None, said: str
) -> None:
    wanted = None if label is None else (label, Bounds(0.0, 1.0))
    with pytest.raises(BadInput, match=said):
        columns(data, names, [Bounds(0.0, 1.0)] * len(names), wanted)
    with pytest.raises(BadInput, match="bounds"):
        columns(data, ["age"], [])


def test_quantising_again_takes_little_memory(tmp_path: Path) -> None:
    n_rows = 10**6
    write_table(tmp_path / "large", ["a", "b", "c"], n_rows, version="0" * 32)
    tracemalloc.start()
    columns(tmp_path / "large", ["a", "b", "c"], [Bounds(-0.5, 0.5)] * 3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # One column of int16 and, for each thread, a few chunks of 65 536 floats; a column of floats
    # alone would be 8 MB.
    assert peak < 2 * n_rows + 4e6


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def run() -> Callable[..., int]:
    """Run the verb as the whole command would, errors and exit codes included."""

    return lambda *arguments: main(["party", "bounds", *map(str, arguments)])


@pytest.fixture
def place(data: Path, tmp_path: Path) -> list[object]:
    files = LedgerFiles(tmp_path / "ledger", tmp_path / "mirror")
    create_ledger(files, LedgerConfig("hospital", {"": RHO_UNIT}))
    return ["--data", data, "--ledger", files.folder, "--mirror", tmp_path / "mirror"]


def test_the_command_buys_shows_and_shows_again_for_free(
    run: Callable[..., int], place: list[object], data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Real noise, of deviation 13: to find 99 % of zeros below 95 % of 2000 rows takes six of them.
    assert run(*place, "--rho", 0.5, "--label", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["dataset"] == dataset_version(data)
    assert [c["name"] for c in shown["columns"]] == [*NAMES, "y"]
    assert shown["columns"][0]["declared"] == [0.0, 1000.0]
    assert shown["columns"][2] == {
        "name": "rare",
        "role": "feature",
        "declared": [0.0, 1.0],
        "bought": [0.0, 1.0],
    }
    assert shown["price"] == shown["charged_now"]
    assert 0.49 < shown["price"]["rho"] <= 0.5
    assert shown["left"]["units"] == RHO_UNIT - shown["price"]["units"]
    assert run(*place, "--epsilon", 0.5, "--label", "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert again == shown | {"charged_now": again["charged_now"]}
    assert again["charged_now"]["units"] == 0
    assert run(*place, "--epsilon", 0.5) == 0
    text = capsys.readouterr()
    assert text.err == ""  # no progress bar away from a terminal
    lines = text.out.splitlines()
    assert lines[0] == f"dataset {shown['dataset']}"
    assert re.match(r"  age     feature +\[0, 1000\] +\[[-0-9.]+, [0-9.]+\] +[0-9.]+%$", lines[2])
    assert lines[4].split() == ["rare", "feature", "[0,", "1]", "[0,", "1]", "100.000%"]
    assert lines[-3] == "charged  nothing: paid earlier"
    assert re.match(r"in all   epsilon \S+ \(rho 0.49", lines[-2])
    assert re.match(r"left     epsilon \S+ \(rho 0.5", lines[-1])


def test_what_is_charged_is_told_apart_from_what_was_paid_earlier(
    run: Callable[..., int], place: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*place, "--rho", 0.2, "--columns", "age") == 0
    first = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in first[-2:]] == ["charged", "left"]
    assert run(*place, "--rho", 0.1, "--columns", "age,income") == 0
    charged, in_all, left = capsys.readouterr().out.splitlines()[-3:]
    assert re.match(r"charged  epsilon \S+ \(rho 0.099", charged)
    assert re.match(r"in all   epsilon \S+ \(rho 0.29", in_all)
    assert re.match(r"left     epsilon \S+ \(rho 0.7", left)


def test_what_the_command_bought_is_in_the_ledger_under_real_noise(
    run: Callable[..., int], place: list[object], data: Path, tmp_path: Path
) -> None:
    assert run(*place, "--epsilon", 2.0, "--delta", 1e-5) == 0
    ledger = open_ledger(LedgerFiles(tmp_path / "ledger", tmp_path / "mirror"))
    assert not ledger.opened.simulation
    bought = buy_with(Gate(ledger, OsNoise()), data, ledger, units=1)
    assert ledger.budget().spent == bought.price
    ledger.close()


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--rho", "1.5"], 4, "left under the cap of epsilon 7.766 (rho 1)"),
        (["--rho", "1e-9"], 3, "give at least rho"),
        (["--rho", "-1"], 3, "the price must be positive"),
        (["--rho", "nan"], 3, "the price is no use"),
        (["--rho", "inf"], 3, "the price is no use"),
        (["--epsilon", "0"], 3, "the price is no use: epsilon"),
        (["--epsilon", "1", "--delta", "2"], 3, "--delta must lie"),
        (["--rho", "0.1", "--delta", "0"], 3, "--delta must lie"),
    ],
)
def test_a_wrong_price_has_its_exit_code_and_one_line(
    run: Callable[..., int],
    place: list[object],
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    code: int,
    said: str,
) -> None:
    assert run(*place, *options, "--json") == code
    shown = capsys.readouterr()
    assert said in json.loads(shown.out)["message"]
    assert shown.err.count("\n") == 1


def test_a_missing_table_or_ledger_is_bad_input_and_no_price_is_wrong_usage(
    run: Callable[..., int], place: list[object], tmp_path: Path
) -> None:
    assert run("--data", tmp_path / "none", *place[2:], "--rho", 0.2) == 3
    assert run(*place[:2], "--ledger", tmp_path / "none", "--rho", 0.2) == 3
    for options in ([], ["--rho", 0.2, "--epsilon", 1]):
        assert run(*place, *options) == 2


def test_the_command_takes_table_ledger_and_mirror_from_the_party_s_file(
    run: Callable[..., int], place: list[object], tmp_path: Path
) -> None:
    _, data, _, ledger, _, mirror = place
    config = tmp_path / "party.toml"
    config.write_text(
        f'coordinator = "hub.example.org:7443"\ncredentials = "pki"\ndata = "{data}"\n'
        f'ledger = "{ledger}"\nmirror = "{mirror}"\npolicy = "policy.toml"\n'
    )
    assert run("--config", config, "--rho", 0.2) == 0
    assert run("--config", config, "--data", tmp_path / "none", "--rho", 0.2) == 3
    assert run("--rho", 0.2) == 2
