"""How a draft of a schema is written, and the words that people use for yes and no."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from colonnade.core.errors import BadInput
from colonnade.data.dialect import PLAIN, Dialect

LEAST_ROWS = 10
"""Rows that a level must have to be drafted."""

_REVIEW = "to be reviewed: taken from rows"
# Besides those that a bool knows by itself. As levels of a category their order would be that of
# the alphabet, and the model of a label would predict the second: "nein".
_YES_AND_NO = (
    ("ja", "nein"),
    ("j", "n"),
    ("oui", "non"),
    ("o", "n"),
    ("sí", "no"),
    ("si", "no"),
    ("sì", "no"),
    ("s", "n"),
    ("sim", "não"),
    ("ja", "nee"),
    ("ja", "nej"),
    ("ja", "nei"),
    ("tak", "nie"),
    ("ano", "ne"),
    ("da", "ne"),
    ("da", "nu"),
    ("igen", "nem"),
    ("kyllä", "ei"),
    ("evet", "hayır"),
    ("positive", "negative"),
    ("positiv", "negativ"),
    ("pos", "neg"),
)


@dataclass(frozen=True, slots=True)
class Drafted:
    """What a column of a file seems to hold."""

    name: str
    type: str  # of a schema, or empty for texts that are no levels
    levels: tuple[str, ...] = ()
    n_rare: int = 0  # texts that too few rows have
    format: str = ""
    note: str = ""
    words: tuple[tuple[str, ...], ...] = ()  # of a bool: the texts for yes, and those for no


def yes_and_no(counts: Mapping[str, int]) -> tuple[tuple[str, ...], ...]:
    """Return the texts for yes and for no if all texts are a language's two words; else nothing.

    Another spelling of a word is shown if enough rows have it, as a level would be.

    Examples
    --------
    >>> yes_and_no({"nein": 60, "Ja": 40, "JA": 1})
    (('Ja', 'ja'), ('nein',))
    >>> yes_and_no({"nein": 60, "vielleicht": 40})
    ()
    """
    there = {text.casefold() for text in counts}
    for words in _YES_AND_NO:
        if there == {*words}:
            shown = {text for text, count in counts.items() if count >= LEAST_ROWS}
            return tuple(
                tuple(sorted({word, *(text for text in shown if text.casefold() == word)}))
                for word in words
            )
    return ()


def schema_text(
    path: Path,
    columns: list[Drafted],
    dialect: Dialect,
    ids: Sequence[str],
    label: str | None,
) -> str:
    """Return a draft of a schema, with a question mark for all that a person has to decide."""
    lines = [
        f"# A draft of the schema of {path.name}, for a person to complete.",
        "# A schema is public: it says only what is known without looking at the rows.",
        f'# Replace every "?", and review all that is marked "{_REVIEW}".',
        "",
    ]
    lines += [
        f"{key} = {json.dumps(value)}  # {_REVIEW}"
        for key in ("delimiter", "decimal", "thousands", "encoding", "duplicates")
        if (value := getattr(dialect, key)) != getattr(PLAIN, key)
    ]
    named = json.dumps(ids[0], ensure_ascii=False) if ids else '"..."'
    mark = "" if len(ids) == 1 else "# "
    lines += [f"{mark}id = {named}  # the column that names the person", ""]
    for column in columns:
        if column.name not in (*ids, label):
            lines += [*_block(column), ""]
    if label is not None:
        lines += [*_label(next(each for each in columns if each.name == label)), ""]
    else:
        lines += [
            "# If this file has the label: move its section to the end and head it [label].",
            "",
        ]
    return "\n".join(lines)


def _label(column: Drafted) -> Iterator[str]:
    """Draft the label; texts must be of two levels, of which the first is 0."""
    if not column.type or (column.type == "category" and len(column.levels) != 2):
        raise BadInput(
            f"the label {column.name!r} holds neither numbers nor two levels that "
            f"{LEAST_ROWS} rows have"
        )
    for line in _block(column):
        if line == "[[feature]]":
            yield "[label]" + (_second(column) if column.type == "category" else "")
        elif not line.startswith(("other =", "# baseline")):
            yield line


def _second(column: Drafted) -> str:
    return f'  # 1 is the second level, "{column.levels[1]}"; exchange them if it is not'


def _block(column: Drafted) -> Iterator[str]:
    name = json.dumps(column.name, ensure_ascii=False)
    if not column.type:
        yield f"# Left out: {name}: {column.note}."
        return
    yield "[[feature]]"
    yield f"name = {name}"
    if column.type != "number" or column.note:
        mark = f"{_REVIEW}; {column.note}" if column.note else _REVIEW
        yield f'type = "{column.type}"  # {mark}'
    if column.type == "category":
        yield f"levels = [  # {_REVIEW}; keep what is public"
        yield from (f"    {json.dumps(level, ensure_ascii=False)}," for level in column.levels)
        yield "]"
        yield f'other = "{_other(column.levels)}"  # {_rare(column)}'
        yield "# baseline = ?  # the level that others are compared with; default: none"
    if column.type == "bool":
        for key, texts in zip(("yes", "no"), column.words, strict=False):
            yield f"{key} = {json.dumps(texts, ensure_ascii=False)}  # {_REVIEW}"
    if column.type in ("number", "date"):
        bound = "a date" if column.type == "date" else "a number"
        yield f"low = ?  # {bound} known without the rows; values below it are clipped to it"
        yield f"high = ?  # {bound} known without the rows"
    if column.format:
        yield f"format = {json.dumps(column.format)}  # {_REVIEW}"


def _rare(column: Drafted) -> str:
    return "every other text" + (
        f"; the file has some that fewer than {LEAST_ROWS} rows have" if column.n_rare else ""
    )


def _other(levels: tuple[str, ...]) -> str:
    return next(name for name in ("other", "any other", "none of these") if name not in levels)
