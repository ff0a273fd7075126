"""Public tables for the benchmark, with bounds that could be declared without seeing the rows.

The bounds follow from what each quantity is (ages, degrees of latitude, codes of a questionnaire,
amounts that a product allows), as an organization would declare them; values outside are clipped.
"""

import csv
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID, Bounds, quantise
from colonnade.methods.problem import Loss
from colonnade.simulate.inprocess.vertical import Data


@dataclass(frozen=True, slots=True)
class PublicTable:
    """A public table: bounds by the start of a column's name, the label's bounds, the loss."""

    bounds: Mapping[str, tuple[float, float]]
    label: tuple[float, float]
    loss: Loss


TABLES = {
    "california": PublicTable(
        {
            "MedInc": (0, 10),  # tens of thousands of dollars
            "HouseAge": (0, 52),
            "AveRooms": (1, 10),
            "AveBedrms": (0, 2),
            "Population": (0, 4000),
            "AveOccup": (1, 6),
            "Latitude": (32.5, 42),  # the state's
            "Longitude": (-124.5, -114),
        },
        label=(0, 5),  # hundreds of thousands of dollars; the survey's own limit
        loss=Loss.SQUARED,
    ),
    "credit_default": PublicTable(
        {
            "LIMIT_BAL": (0, 500_000),  # New Taiwan dollars
            "SEX": (1, 2),
            "EDUCATION": (1, 4),
            "MARRIAGE": (1, 3),
            "AGE": (20, 70),
            "PAY_AMT": (0, 20_000),
            "PAY_": (-2, 4),  # months of delay; more than four are rare in any such book
            "BILL_AMT": (0, 250_000),
        },
        label=(-1, 1),
        loss=Loss.LOGISTIC,
    ),
    "adult": PublicTable(
        {
            "age": (17, 90),
            "education_num": (1, 16),
            "capital_gain": (0, 15_000),
            "capital_loss": (0, 2_500),
            "hours_per_week": (0, 80),
            "": (0, 1),  # everything else is coded 0 or 1
        },
        label=(-1, 1),
        loss=Loss.LOGISTIC,
    ),
}

# Tables that no rule was chosen on.
FRESH = {
    "electricity": PublicTable(
        {"day": (1, 7), "": (0, 1)},  # normalised by its publisher
        label=(-1, 1),
        loss=Loss.LOGISTIC,
    ),
    "phishing": PublicTable(
        {"": (-1, 1)}, label=(-1, 1), loss=Loss.LOGISTIC
    ),  # answers coded -1, 0, 1
    "a9a": PublicTable({"": (0, 1)}, label=(-1, 1), loss=Loss.LOGISTIC),
    "breast_cancer": PublicTable(
        {
            "mean_radius": (0, 40),  # micrometres, from images of cells
            "mean_texture": (0, 50),
            "mean_perimeter": (0, 250),
            "mean_area": (0, 3000),
            "radius_error": (0, 2),
            "texture_error": (0, 5),
            "perimeter_error": (0, 20),
            "area_error": (0, 300),
            "worst_radius": (0, 40),
            "worst_texture": (0, 60),
            "worst_perimeter": (0, 250),
            "worst_area": (0, 4000),
            "worst_compactness": (0, 1),
            "worst_concavity": (0, 1),
            "mean_": (0, 0.5),
            "worst_": (0, 0.5),
            "": (0, 0.1),
        },
        label=(-1, 1),
        loss=Loss.LOGISTIC,
    ),
    "diabetes": PublicTable(
        {
            "age": (18, 90),
            "sex": (1, 2),
            "bmi": (15, 50),
            "bp": (60, 140),
            "s1": (80, 320),  # milligrams a decilitre
            "s2": (30, 260),
            "s3": (15, 110),
            "s4": (1, 10),
            "s5": (2.5, 7),
            "s6": (50, 140),
        },
        label=(0, 400),
        loss=Loss.SQUARED,
    ),
}


def load(folder: Path, name: str, *, parties: int = 4) -> Data:
    """Read ``NAME.csv.gz``, put it on the grid and split its columns over parties in order."""
    values, bounds, label, label_bounds = read(folder, name)
    columns = [quantise(c, limits, grid=GRID) for c, limits in zip(values, bounds, strict=True)]
    return Data(
        np.stack(columns),
        quantise(label, label_bounds, grid=GRID),
        split_evenly(len(columns), parties),
    )


def split_evenly(columns: int, parties: int) -> tuple[tuple[int, ...], ...]:
    """Return the columns of each party, in order."""
    return tuple(tuple(part.tolist()) for part in np.array_split(np.arange(columns), parties))


def read(folder: Path, name: str) -> tuple[list[FloatArray], list[Bounds], FloatArray, Bounds]:
    """Read ``NAME.csv.gz``: columns and their declared bounds, the label and its."""
    path = folder / f"{name}.csv.gz"
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            header, *rows = list(csv.reader(file))
    except OSError as error:
        raise BadInput(f"{path}: cannot read the table: {error.strerror or error}") from None
    *columns, label = np.array(rows, np.float64).T
    table = (TABLES | FRESH)[name]
    return columns, [_bounds(table, title) for title in header[:-1]], label, Bounds(*table.label)


def _bounds(table: PublicTable, title: str) -> Bounds:
    """Return the bounds of the first entry with which the title begins."""
    return next(Bounds(*pair) for start, pair in table.bounds.items() if title.startswith(start))
