"""Raw values become numbers by declarations alone, the same wherever they are read."""

import datetime as dt
import math
from collections.abc import Sequence

import numpy as np
import pytest

from colonnade.core.fixedpoint import GRID, quantise
from colonnade.data.encoding import Encoding
from colonnade.data.kinds import UNKNOWN, Bool, Category, Date, Kind, Number, Ordinal
from colonnade.data.schema import parse_schema
from colonnade.party.data.quantising import encoded

WARD = Category(("north", "south", "NA"), other="rest", baseline="south")
NAN = math.nan


def read(kind: Kind, texts: Sequence[str | None], **others: object) -> list[float]:
    encoding = Encoding("x", kind, **others)  # type: ignore[arg-type]
    return [float(number) for number in encoding.read(iter(texts), len(texts))]


@pytest.mark.parametrize(
    ("kind", "texts", "numbers"),
    [
        (Number(), ["1.5", " -2 ", "NA", None, "one"], [1.5, -2.0, NAN, NAN, UNKNOWN]),
        (Bool(), ["Yes", "n", "TRUE", "0", "", "ja"], [1.0, 0.0, 1.0, 0.0, NAN, UNKNOWN]),
        (Bool(("ja", "J"), ("nein",)), [" ja", "J", "nein", "yes"], [1.0, 1.0, 0.0, UNKNOWN]),
        (
            Date(dt.date(2020, 1, 1)),
            ["2020-01-01", "2019-12-31", "2020-03-01 13:45:00", "1.2.2020", "null"],
            [0.0, -1.0, 60.0, UNKNOWN, NAN],
        ),
        (Date(dt.date(2020, 1, 1), "%d.%m.%Y"), ["02.01.2020", "2020-01-02"], [1.0, UNKNOWN]),
        (Ordinal(("low", "mid", "high")), ["high", "low", "Low"], [2.0, 0.0, UNKNOWN]),
        (Ordinal(("low", "high"), (1.0, 7.5), unknown=True), ["high", "?"], [7.5, NAN]),
        # A level is one although its text is among those that mean "no value".
        (WARD, ["north", "NA", " south ", "East", "", None], [0.0, 2.0, 1.0, 3.0, NAN, NAN]),
        (Category(("a", "b")), ["a", "c"], [0.0, UNKNOWN]),
        (Category(("a", "b"), unknown=True), ["b", "c"], [1.0, NAN]),
    ],
)
def test_texts_are_read_as_declared(
    kind: Kind, texts: list[str | None], numbers: list[float]
) -> None:
    np.testing.assert_array_equal(read(kind, texts), numbers)


@pytest.mark.parametrize("format_", ["%d/%d/%Y", "%", "%Q"])
def test_a_format_of_dates_that_cannot_be_read_back_is_refused(format_: str) -> None:
    with pytest.raises(ValueError, match="format"):
        Date(dt.date(2020, 1, 1), format_)


def test_texts_that_a_schema_calls_missing_are() -> None:
    np.testing.assert_array_equal(read(Bool(), ["?", "yes"], missing=("?",)), [NAN, 1.0])
    np.testing.assert_array_equal(read(Bool(), ["", "yes"], missing=("?",)), [UNKNOWN, 1.0])


def test_a_category_has_a_column_for_each_level_but_the_baseline() -> None:
    encoding = Encoding("ward", WARD)
    assert encoding.names == ("ward=north", "ward=NA", "ward=rest")
    places = encoding.read(iter(["north", "south", "NA", "x"]), 4)
    spread = np.stack(encoding.spread(places))
    assert spread.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


SCHEMA = """
[[feature]]
name = "ward"
type = "category"
levels = ["north", "south", "west"]
{}
"""


@pytest.mark.parametrize(
    "more",
    [
        "",
        "other = 'rest'",
        "baseline = 'south'\nother = 'rest'",
        "fill = 'west'",
        "baseline = 'south'\nfill = 'south'",
        "missing_indicator = true",
        "missing_indicator = true\nbaseline = 'north'\nother = 'rest'",
    ],
)
def test_replacing_a_row_moves_at_most_two_columns_of_a_category(more: str) -> None:
    """The claim that sensitivities rest on, for every pair of values that a row can have."""
    schema = parse_schema(SCHEMA.format(more), origin="s")
    (column,) = schema.features
    texts = ["north", "south", "west", "", None, *(["elsewhere"] if "other" in more else [])]
    numbers = column.encoding(schema.missing).read(iter(texts), len(texts))
    grid = np.stack([quantise(v, b, grid=GRID) for v, b in encoded(column, numbers)])
    assert set(np.unique(grid).tolist()) == {-GRID, GRID}
    assert ((grid == GRID).sum(axis=0) <= 1).all()
    moved = grid[:, :, None].astype(np.int64) - grid[:, None, :]
    worst = (moved**2).sum(axis=0).max()
    assert worst == 2 * (2 * GRID) ** 2


def test_an_indicator_says_where_there_was_no_value() -> None:
    encoding = Encoding("bmi", missing_indicator=True)
    assert encoding.names == ("bmi", "bmi=missing")
    value, missing = encoding.spread(np.array([1.0, np.nan]))
    np.testing.assert_array_equal(value, [1.0, np.nan])
    assert missing.tolist() == [0.0, 1.0]
