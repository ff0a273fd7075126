"""What it is worth that text columns are declared as categories, and not encoded by hand.

The same columns of 0 and 1 reach the same parties in both cases. Encoded by hand, each is a number
to the program: bounds are bought for it, and noise is made for a row that moves all of them. As the
columns of a category no bounds are bought for them, and noise is made for a row that moves two.
"""

import csv
import gzip
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colonnade.bench.vertical.methods import bought_bounds
from colonnade.core.arrays import AnyArray
from colonnade.core.fixedpoint import GRID, Bounds, quantise
from colonnade.methods.bounds import QuantilePlan
from colonnade.methods.bounds_budget import BoundsBudget
from colonnade.methods.moments.plan import recommend
from colonnade.methods.problem import Loss, Problem
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.sampling import NoiseSource
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.from_file import deal_columns, read_table, sites_from
from colonnade.simulate.data.held_out import divide, rows_held_out
from colonnade.simulate.inprocess.moments import fit
from colonnade.simulate.inprocess.vertical import Data, auc
from colonnade.simulate.run import bounded_columns
from colonnade.simulate.sites import Site, SiteColumn

EPSILON, DELTA, HELD_OUT = 1.0, 1e-6, 0.2
PARTIES = ("p0", "p1", "p2")

# The most frequent level of each category has no column in the table of 0 and 1.
_ADULT = {
    "workclass": "Private",
    "marital_status": "Married-civ-spouse",
    "occupation": "Prof-specialty",
    "relationship": "Husband",
    "race": "White",
    "sex": "Male",
    "native_country": "United-States",
}
_CREDIT = ("SEX", "EDUCATION", "MARRIAGE")

Rows = tuple[list[str], list[list[str]]]


@dataclass(frozen=True, slots=True)
class CategoryFigures:
    """How well a table is fitted, as the median of some seeds, on rows held out."""

    data: str
    auc: float
    auc_hand_encoded: float


def adult(header: list[str], rows: list[list[str]]) -> Rows:
    """Put the texts back that the table of 0 and 1 was made of."""
    plain = [place for place, name in enumerate(header) if "=" not in name]
    texts: dict[str, list[tuple[int, str]]] = {name: [] for name in _ADULT}
    for place, name in enumerate(header):
        category, _, level = name.partition("=")
        if level:
            texts[category].append((place, level))
    found = []
    for row in rows:
        levels = [
            next((level for place, level in places if row[place] == "1"), _ADULT[name])
            for name, places in texts.items()
        ]
        found.append([*levels, *(row[place] for place in plain)])
    return [*texts, *(header[place] for place in plain)], found


def credit_default(header: list[str], rows: list[list[str]]) -> Rows:
    """Write codes as texts."""
    coded = {place for place, name in enumerate(header) if name in _CREDIT}
    return header, [
        [f"code {cell}" if place in coded else cell for place, cell in enumerate(row)]
        for row in rows
    ]


def phishing(header: list[str], rows: list[list[str]]) -> Rows:
    """Write all codes as texts."""
    return header, [[*(f"code {cell}" for cell in row[:-1]), row[-1]] for row in rows]


TABLES: dict[str, Callable[[list[str], list[list[str]]], Rows]] = {
    "adult": adult,
    "credit_default": credit_default,
    "phishing": phishing,
}


def measure_categories(
    folder: Path, names: Sequence[str] = tuple(TABLES), *, seeds: Sequence[int] = (0, 1, 2)
) -> list[CategoryFigures]:
    """Return a row for each of the public tables in ``folder``."""
    return [_measure(folder, name, seeds) for name in names]


def _measure(folder: Path, name: str, seeds: Sequence[int]) -> CategoryFigures:
    sites = text_sites(folder, name)
    texts, by_hand = (
        statistics.median(score(made, seed) for seed in seeds)
        for made in (sites, [_encoded_by_hand(site) for site in sites])
    )
    return CategoryFigures(name, round(texts, 4), round(by_hand, 4))


def text_sites(folder: Path, name: str) -> list[Site]:
    """Return a public table with texts, dealt out to three parties that all have the label."""
    with gzip.open(folder / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    names, texts = TABLES[name](header, rows)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "raw.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows(texts)
        table = read_table(path, header[-1], loss=Loss.LOGISTIC)
    return sites_from(table, deal_columns(table, PARTIES), owner=None)


def _encoded_by_hand(site: Site) -> Site:
    columns = [made for column in site.features for made in column.filled()]
    plain = [SiteColumn(each.name, each.bounds, each.values) for each in columns]
    return Site(site.party, plain, site.label)


def score(sites: Sequence[Site], seed: int, *, epsilon: float = EPSILON) -> float:
    """Return the AUC of a job in one process, its bounds paid from the same budget."""
    n_rows = len(sites[0].features[0].values)
    divided = divide(sites, rows_held_out(HELD_OUT, n_rows), seed=seed)
    units, noise = units_down(rho_of(epsilon, DELTA)), SeededNoise(seed)
    columns = bounded_columns(sites, Loss.LOGISTIC)
    budget = BoundsBudget.of(columns, n_rows=divided.n_rows, units=units, share=None)
    bounds = {
        site.party: _bounds(site, budget.prices.get(site.party, 0), noise)
        for site in divided.fitted
    }
    problem = Problem(
        n_rows=divided.n_rows,
        features={site.party: [each.name for each in site.encoded()] for site in sites},
        rho_units=units - budget.set_aside,
        loss=Loss.LOGISTIC,
        groups={site.party: site.groups() for site in sites if any(site.groups())},
    )
    model = fit(_data(divided.fitted, bounds), recommend(problem).spec, noise, job=f"seed {seed}")
    left = _data(divided.scored, bounds)
    return auc(left.label.astype(np.float64), model.predict(left))


def _bounds(site: Site, price: int, noise: NoiseSource) -> list[Bounds]:
    """Return the bounds of a party's columns, bought where that is possible and paid for."""
    raw = [column for column in site.features if not column.is_exact]
    plan = QuantilePlan(max(len(raw), 1), len(site.features[0].values))
    tight: dict[str, Bounds] = {}
    if price and raw:
        filled = [column.filled()[0] for column in raw]
        values, declared = [each.values for each in filled], [each.bounds for each in filled]
        found, _ = bought_bounds(values, declared, plan, price, noise)
        tight = {each.name: bounds for each, bounds in zip(filled, found, strict=True)}
    return [tight.get(each.name, each.bounds) for each in site.encoded()]


def _data(sites: Sequence[Site], bounds: dict[str, list[Bounds]]) -> Data:
    columns: list[AnyArray] = []
    splits = []
    for site in sites:
        filled = [made for column in site.features for made in column.filled()]
        splits.append(tuple(range(len(columns), len(columns) + len(filled))))
        pairs = zip(filled, bounds[site.party], strict=True)
        columns += [quantise(each.values, limits, grid=GRID) for each, limits in pairs]
    label = next(site.label for site in sites if site.label is not None)
    return Data(
        np.stack(columns), quantise(label.values, Bounds(0.0, 1.0), grid=GRID), tuple(splits)
    )
