import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.data import schema as schema_module
from colonnade.data.schema import DEFAULT_MISSING, Column, Schema, load_schema, parse_schema

AGE = '[[feature]]\nname = "age"\nlow = 0\nhigh = 110\n'


def parse(text: str) -> Schema:
    return parse_schema(text, origin="people.toml")


def test_the_example_in_the_documentation_is_read_as_it_says() -> None:
    example = textwrap.dedent((schema_module.__doc__ or "").split("::\n", 1)[1])
    assert parse(example) == Schema(
        id="patient",
        missing=("", "NA", "-999"),
        features=(
            Column("age", column="age", bounds=Bounds(0.0, 110.0), fill=55.0),
            Column("glucose", column="Glucose (mg/dL)", bounds=Bounds(40.0, 400.0), fill=95.0),
        ),
        label=Column("readmitted", column="readmitted", bounds=Bounds(0.0, 1.0), fill=0.5),
    )


def test_defaults_are_no_id_no_label_usual_missing_texts_and_the_middle() -> None:
    schema = parse(AGE)
    assert (schema.id, schema.label, schema.missing) == (None, None, DEFAULT_MISSING)
    assert schema.features[0].fill == 55.0
    assert schema.columns == schema.features


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("low = 0\nname = age\n", ["not valid TOML", "line 2"]),
        ("", ["no features", "[[feature]]"]),
        ("feature = []", ["no features"]),
        ("feature = 3", ["no features"]),
        ("feature = [3]", ["feature 1", "[[feature]]"]),
        ('label = "y"\n' + AGE, ["label", "table"]),
        (AGE + "[[label]]\nname = 'y'\nlow = 0\nhigh = 1\n", ["label", "table"]),
        ("colour = 1\n" + AGE, ["'colour'", "known keys: id"]),
        (AGE + "hight = 1\n", ["'age'", "'hight'", "known keys: name"]),
        ("[[feature]]\nlow = 0\nhigh = 1\n", ["feature 1", "'name' is missing"]),
        ("[[feature]]\nname = 'a'\nhigh = 1\n", ["'a'", "'low' is missing"]),
        ("[[feature]]\nname = 'a'\nlow = 1\n", ["'a'", "'high' is missing"]),
        ("[[feature]]\nname = ''\nlow = 0\nhigh = 1\n", ["'name'", "non-empty"]),
        ("[[feature]]\nname = 7\nlow = 0\nhigh = 1\n", ["'name'", "text"]),
        ("[[feature]]\nname = 'a'\nlow = 1\nhigh = 0\n", ["'low'", "less than", "low = 1.0"]),
        ("[[feature]]\nname = 'a'\nlow = 1\nhigh = 1\n", ["'low'", "less than"]),
        ("[[feature]]\nname = 'a'\nlow = -inf\nhigh = 1\n", ["'low'", "finite"]),
        ("[[feature]]\nname = 'a'\nlow = 0\nhigh = nan\n", ["'low'", "finite"]),
        ("[[feature]]\nname = 'a'\nlow = '0'\nhigh = 1\n", ["'low'", "number"]),
        ("[[feature]]\nname = 'a'\nlow = false\nhigh = 1\n", ["'low'", "number"]),
        (f"[[feature]]\nname = 'a'\nlow = 0\nhigh = 1{'0' * 400}\n", ["'high'", "too large"]),
        (AGE + "fill = 111\n", ["'fill'", "within [0.0, 110.0]", "111"]),
        (AGE + "fill = nan\n", ["'fill'", "within"]),
        (AGE + "column = 3\n", ["'column'", "text"]),
        (AGE + AGE, ["'age' is used twice", "rename"]),
        (AGE + AGE.replace("[[feature]]", "[label]"), ["'age' is used twice"]),
        ("id = 3\n" + AGE, ["'id'", "text"]),
        ("missing = 'NA'\n" + AGE, ["'missing'", "list"]),
        ("missing = [-999]\n" + AGE, ["'missing'", "list of texts"]),
        ('"two\\nlines" = 1\n' + AGE, ["two\\nlines"]),
    ],
)
def test_a_fault_is_one_line_that_names_file_key_and_fix(text: str, said: list[str]) -> None:
    with pytest.raises(BadInput) as refused:
        parse(text)
    message = str(refused.value)
    assert message.startswith("people.toml: ")
    assert "\n" not in message
    assert [part for part in said if part not in message] == []


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
    with pytest.raises(BadInput, match="1 to 200 printable characters"):
        parse_schema(text, origin="schema.toml")
