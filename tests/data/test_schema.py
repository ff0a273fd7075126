import datetime as dt
import itertools
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.data import schema as schema_module
from colonnade.data.dialect import Dialect
from colonnade.data.kinds import Bool, Category, Date, Ordinal
from colonnade.data.schema import DEFAULT_MISSING, Column, Schema, load_schema, parse_schema
from colonnade.data.schema_text import column_text

AGE = '[[feature]]\nname = "age"\nlow = 0\nhigh = 110\n'


def parse(text: str) -> Schema:
    return parse_schema(text, origin="people.toml")


def example(number: int) -> str:
    """Return an indented example of the module's documentation."""
    text = (schema_module.__doc__ or "").split("::\n")[number]
    lines = itertools.takewhile(lambda line: not line or line[0] == " ", text.splitlines())
    return textwrap.dedent("\n".join(lines))


def test_the_example_in_the_documentation_is_read_as_it_says() -> None:
    assert parse(example(1)) == Schema(
        id="patient",
        missing=("", "NA", "-999"),
        features=(
            Column("age", column="age", bounds=Bounds(0.0, 110.0), fill=55.0),
            Column("glucose", column="Glucose (mg/dL)", bounds=Bounds(40.0, 400.0), fill=95.0),
        ),
        label=Column("readmitted", column="readmitted", bounds=Bounds(0.0, 1.0), fill=0.5),
    )


def test_columns_of_other_kinds_are_declared_as_documented() -> None:
    unit = Bounds(0.0, 1.0)
    category = Category(("surgery", "medicine"), other="elsewhere", baseline="medicine")
    date = Date(dt.date(2015, 1, 1), "%d.%m.%Y")
    assert parse(example(2)) == Schema(
        dialect=Dialect(delimiter=";", encoding="cp1252", duplicates="number"),
        features=(
            Column("ward", "ward", unit, 0.0, category),
            Column("smoker", "smoker", unit, 0.5, Bool(("J",), ("N",)), missing_indicator=True),
            Column("admitted", "admitted", Bounds(0.0, 4017.0), 2008.5, date),
            Column("pain", "pain", Bounds(0.0, 2.0), 1.0, Ordinal(("none", "some", "much"))),
        ),
        label=Column("outcome", "outcome", unit, 0.5, Ordinal(("alive", "dead"))),
    )


def test_defaults_are_no_id_no_label_usual_missing_texts_and_the_middle() -> None:
    schema = parse(AGE)
    assert (schema.id, schema.label, schema.missing) == (None, None, DEFAULT_MISSING)
    assert schema.features[0].fill == 55.0
    assert schema.columns == schema.features


def feature(**keys: str) -> str:
    """Write one feature."""
    return "[[feature]]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())


def label(**keys: str) -> str:
    """Write a label."""
    return feature(name="'y'", **keys).replace("[[feature]]", "[label]")


A = {"name": "'a'", "low": "0", "high": "1"}
CATEGORY, ORDINAL = (
    feature(name="'a'", type="'category'"),
    feature(name="'a'", type="'ordinal'"),
)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("low = 0\nname = age\n", "not valid TOML"),
        ("", "no features"),
        ("feature = []", "no features"),
        ("feature = 3", "feature: "),
        ("feature = [3]", "[feature 1] "),
        ('label = "y"\n' + AGE, "[label] "),
        (AGE + "[[label]]\nname = 'y'\nlow = 0\nhigh = 1\n", "[label] "),
        ("colour = 1\n" + AGE, "unknown key 'colour'; known keys: id, "),
        (AGE + "hight = 1\n", "[feature 1 'age'] unknown key 'hight'; known keys: name, "),
        (AGE + feature(low="0", high="1"), "[feature 2] name: "),
        (feature(name="'a'", high="1"), "[feature 1 'a'] low: "),
        (feature(name="'a'", low="1"), "[feature 1 'a'] high: "),
        (feature(**A | {"name": "''"}), "[feature 1 ''] name: "),
        (feature(**A | {"name": "7"}), "[feature 1] name: "),
        (feature(**A | {"low": "2"}), "[feature 1 'a'] low must be less than high"),
        (feature(**A | {"low": "1"}), "[feature 1 'a'] low must be less than high"),
        (feature(**A | {"low": "-inf"}), "[feature 1 'a'] bounds must be finite"),
        (feature(**A | {"high": "nan"}), "[feature 1 'a'] bounds must be finite"),
        (feature(**A | {"low": "'0'"}), "[feature 1 'a'] low: "),
        (feature(**A | {"low": "false"}), "[feature 1 'a'] low: "),
        (feature(**A | {"high": f"1{'0' * 400}"}), "[feature 1 'a'] high: "),
        (feature(**A | {"high": f"1{'0' * 5000}"}), "not valid TOML"),
        (AGE + "fill = 111\n", "[feature 1 'age'] fill: "),
        (AGE + "fill = nan\n", "[feature 1 'age'] fill: "),
        (AGE + "column = 3\n", "[feature 1 'age'] column: "),
        (AGE + "column = ''\n", "[feature 1 'age'] column: "),
        (AGE + AGE, "name: 'age' "),
        (AGE + AGE.replace("[[feature]]", "[label]"), "name: 'age' "),
        ("id = 3\n" + AGE, "id: "),
        ("client_ids = 'exact'\n" + AGE, "client_ids: "),
        ("client = 'c'\nclient_ids = 'Exact'\n" + AGE, "client_ids: must be one of exact, "),
        ("missing = 'NA'\n" + AGE, "missing: "),
        ("missing = ['', -999]\n" + AGE, "missing 2: "),
        ("delimiter = ';;'\n" + AGE, "delimiter: must be one character"),
        ("decimal = ';'\n" + AGE, 'decimal: must be "." or ","'),
        ("thousands = '.'\n" + AGE, "thousands: must be another mark"),
        ("encoding = 'klingon'\n" + AGE, "encoding: is not known"),
        ("encoding = 'base64'\n" + AGE, "encoding: is not known"),
        (
            AGE + "levels = ['x']\n",
            "[feature 1 'age'] levels: is not for the type number, which has low, high, but for c",
        ),
        (AGE + "type = 'text'\n", "[feature 1 'age'] type: must be one of "),
        (feature(name="'a'", type="'category'"), "[feature 1 'a'] levels: is missing"),
        (CATEGORY + "levels = []\n", "[feature 1 'a'] "),
        (CATEGORY + "levels = ['x', 'x']\n", "[feature 1 'a'] levels: a text is given twice"),
        (CATEGORY + "levels = ['x', 'y ']\n", "[feature 1 'a'] levels: a text has white space"),
        (CATEGORY + "levels = ['x']\nother = 'x'\n", "[feature 1 'a'] levels: a text is given"),
        (CATEGORY + "levels = ['x']\nbaseline = 'z'\n", "[feature 1 'a'] baseline: must be one"),
        (CATEGORY + "levels = ['x']\nbaseline = 'x'\n", "[feature 1 'a'] levels: there is none"),
        (CATEGORY + "levels = ['x', 'y']\nfill = 'z'\n", "[feature 1 'a'] fill: must be one"),
        (
            CATEGORY + "levels = ['x', 'y']\nfill = 'x'\nmissing_indicator = true\n",
            "[feature 1 'a'] fill: a category with a missing_indicator has none",
        ),
        (
            CATEGORY + "levels = ['x']\nother = 'y'\nunknown = 'missing'\n",
            "[feature 1 'a'] unknown: there is a level for the rest",
        ),
        (CATEGORY + "levels = ['x']\nlow = 0\n", "[feature 1 'a'] low: is not for the type"),
        (feature(name="'a'", type="'bool'", yes="['J']"), "[feature 1 'a'] yes, no: declare"),
        (feature(name="'a'", type="'bool'", fill="0.5"), "[feature 1 'a'] fill: must be true"),
        (feature(name="'a'", type="'date'", low="0", high="1"), "[feature 1 'a'] low: must be a"),
        (feature(name="'a'", low="2020-01-01", high="1"), "[feature 1 'a'] low: must be a num"),
        (ORDINAL + "levels = ['x']\n", "[feature 1 'a'] levels: an ordinal has at least two"),
        (ORDINAL + "levels = ['x', 'y']\nvalues = [1]\n", "[feature 1 'a'] values: must be as"),
        (ORDINAL + "levels = ['x', 'y']\nvalues = [1, 1]\n", "[feature 1 'a'] values: must inc"),
        (ORDINAL + "levels = ['x', 'y']\nfill = 'z'\n", "[feature 1 'a'] fill: must be one"),
        (CATEGORY + "levels = ['x']\n" + feature(**A | {"name": "'a=x'"}), "name: 'a=x' is used"),
        (AGE + label(type="'ordinal'", levels="['x', 'y']"), "type: a label is a number, a bool"),
        (AGE + label(type="'category'", levels="['x', 'y', 'z']"), "levels: a label that is a"),
        (AGE.replace("110", "?"), 'line 4: high of "age" is still to be decided'),
        (AGE.replace("110", "?  # greatest"), 'line 4: high of "age" is still to be decided'),
        ('"two\\nlines" = 1\n' + AGE, "unknown key 'two\\nlines'"),
        # A key that looks like a path in msgspec's words.
        *((f'"x` - at `$.feature[{at}]" = 1\n{AGE}', "") for at in ("0", "9" * 5000)),
    ],
)
def test_a_fault_is_one_line_that_names_file_table_and_key(text: str, where: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse(text)
    assert refused.value.code == "bad_input"
    assert str(refused.value).startswith(f"people.toml: {where}")
    assert "\n" not in str(refused.value)


def test_the_digest_ignores_comments_and_spelled_out_defaults() -> None:
    spelled = (
        '# people\nmissing = ["NA", "", "null", "NaN"]\n' + AGE + "fill = 55.0\ncolumn = 'age'\n"
    )
    assert parse(spelled).digest == parse(AGE).digest


def test_the_digest_is_stable_between_releases() -> None:
    expected = "dc9cc2ba079ef02a210844153a54a3f9ccb57f36946c91f90ba1eb0d67940b56"
    assert parse(AGE).digest == expected


def test_the_digest_covers_every_declared_fact() -> None:
    schema = parse('id = "p"\n' + AGE + "[label]\nname = 'y'\nlow = 0\nhigh = 1\n")
    age = schema.features[0]
    assert schema.label is not None
    others = [
        replace(schema, id="q"),
        replace(schema, id=None),
        replace(schema, missing=("",)),
        replace(schema, label=None),
        replace(schema, dialect=Dialect(decimal=",")),
        replace(schema, label=replace(schema.label, fill=0.0)),
        replace(schema, features=(age, age)),
        *(
            replace(schema, features=(replace(age, **change),))
            for change in (
                {"name": "years"},
                {"column": "Age"},
                {"bounds": Bounds(0.0, 111.0)},
                {"bounds": Bounds(-1.0, 110.0)},
                {"fill": 1.0},
                {"kind": Bool()},
                {"kind": Category(("x", "y"))},
                {"kind": Category(("x", "y"), baseline="x")},
                {"kind": Date(dt.date(2020, 1, 1))},
                {"kind": Ordinal(("x", "y"))},
                {"missing_indicator": True},
            )
        ),
    ]
    assert len({schema.digest, *(other.digest for other in others)}) == len(others) + 1


def test_a_file_is_read_with_its_path_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(AGE)
    assert load_schema(path) == parse(AGE)
    path.write_bytes(b"\xff\xfe")
    for faulty in (path, tmp_path / "absent.toml", tmp_path):
        with pytest.raises(BadInput) as refused:
            load_schema(faulty)
        assert str(refused.value).startswith(f"{faulty}: ")
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["a\\u0007b", "x" * 201], ids=["bell", "long"])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    text = f'[[feature]]\nname = "{name}"\nlow = 0\nhigh = 1\n'
    with pytest.raises(BadInput) as refused:
        parse(text)
    assert "] name: " in str(refused.value)
    assert refused.value.code == "bad_input"


def test_a_column_written_as_text_is_read_back_the_same() -> None:
    more = (
        CATEGORY.replace("'a'", "'b'")
        + "levels = ['x\\\\y', 'ü\"']\nunknown = 'missing'\nfill = 'ü\"'\n"
    )
    others = example(2).partition("[[feature]]")
    features = AGE + "missing_indicator = true\nfill = 7\n" + more + others[1] + others[2]
    schema = parse(features)
    assert schema.label is not None
    written = [column_text("[[feature]]", each) for each in schema.features]
    again = parse("\n".join([*written, column_text("[label]", schema.label)]))
    assert (again.features, again.label) == (schema.features, schema.label)
