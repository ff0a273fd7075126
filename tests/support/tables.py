"""Public tables, where somebody has them at hand, and a schema of two columns."""

import csv
import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from colonnade.core.arrays import FloatArray

SCHEMA = """
[[feature]]
name = "age"
low = 0
high = 110
[label]
name = "cost"
low = 0
high = 100
"""
_NAMED = os.environ.get("COLONNADE_DATA")
FOLDER = Path(_NAMED) if _NAMED else Path(__file__).resolve().parents[3] / "shared" / "data"


def require(name: str) -> Path:
    """Return the folder that holds ``NAME.csv.gz``, or skip the test."""
    if not (FOLDER / f"{name}.csv.gz").is_file():
        pytest.skip("set COLONNADE_DATA to the folder of the data sets")
    return FOLDER


def read(name: str) -> tuple[list[str], FloatArray]:
    """Return the names of the columns and the rows of ``NAME.csv.gz``, or skip the test."""
    with gzip.open(require(name) / f"{name}.csv.gz", "rt", newline="") as file:
        header, *rows = csv.reader(file)
    return header, np.array(rows, np.float64)
