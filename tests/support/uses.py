"""What a party does with its table on its own, each of which its ledger pays for or notes."""

from pathlib import Path

from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.party.data.binding import claim, rows_of
from colonnade.party.data.bounding.bounds import buy_bounds
from colonnade.party.data.dataset import open_dataset
from colonnade.party.fit import fit_charged
from colonnade.party.fit_order import FitOrder, party_table
from colonnade.privacy.accounting import units_down
from colonnade.privacy.sampling import OsNoise
from colonnade.solvers.algorithms.coordinate import CoordinateDescent

ORDER = FitOrder("test", "squared", CoordinateDescent(passes=1), epsilon=1.0)


def begin(data: Path, ledger: Ledger) -> None:
    with open_dataset(data) as dataset:
        claim(rows_of(dataset), ledger)


def fit(data: Path, ledger: Ledger) -> None:
    with open_dataset(data) as dataset:
        table = party_table(dataset, ledger, declared=True)
        fit_charged(table.resolve(ORDER, charged=True), ledger)


def bounds(data: Path, ledger: Ledger) -> None:
    with open_dataset(data) as dataset:
        buy_bounds(dataset, ledger, Gate(ledger, OsNoise()), units=units_down(0.9))
