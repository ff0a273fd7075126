"""A party's part of a score as a SQL expression over the party's own raw columns.

The expression does in SQL what `LinearModel.predict` does: it reads texts and dates as the model's
encodings say, fills, clips, scales, rounds to the grid and multiplies by integer coefficients. The
operations are those of IEEE 754 doubles and 64-bit integers in the same order, so the result is the
same integer. A text that predictions would refuse makes it NULL.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID
from colonnade.data.encoding import MISSING_SUFFIX, Encoding
from colonnade.data.integer_scores import IntegerScores
from colonnade.data.kinds import NO, YES, Bool, Category, Date, Number, Ordinal
from colonnade.data.model import LinearModel
from colonnade.data.model_columns import Input, ModelFeature


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """What differs between databases."""

    name: str
    double: str
    number: str  # from a column to a double; NULL for a text that is none, or an error
    nan: str  # whether a double is not a number
    rounded: str  # half to even
    days: str  # from a text to a date by a format of strptime; empty if there is none


DIALECTS = {
    "duckdb": SqlDialect(
        "duckdb",
        "DOUBLE",
        "TRY_CAST({} AS DOUBLE)",
        "isnan({})",
        "round_even({}, 0)",
        "CAST(strptime({}, {}) AS DATE)",
    ),
    "postgresql": SqlDialect(
        "postgresql",
        "DOUBLE PRECISION",
        "CAST({} AS DOUBLE PRECISION)",
        "({} = 'NaN'::DOUBLE PRECISION)",
        "round({})",
        "",
    ),
}


def partial_score(model: LinearModel, party: str, dialect: str = "duckdb") -> str:
    """Return the expression of a party's part of a score, without the intercept.

    It is an integer: divided by ``2**(bits + 14)`` with the bits of `IntegerScores.of`, the sum
    over all parties and the intercept is the score. Columns have the names of the party's source.

    Examples
    --------
    >>> from colonnade.data.model import ModelLabel
    >>> age = ModelFeature("hospital", "age", low=0.0, high=100.0, fill=50.0, coef_scaled=0.5)
    >>> model = LinearModel("ab12", "squared", ModelLabel("y", 0.0, 1.0), 0.0, (age,), private=True)
    >>> '"age"' in partial_score(model, "hospital")
    True
    """
    if dialect not in DIALECTS:
        raise BadInput(f"a dialect is one of {', '.join(DIALECTS)}")
    if party not in {feature.party for feature in model.features}:
        raise BadInput(f"the model has no feature of a party {party!r}")
    writer, integers = _Writer(DIALECTS[dialect]), IntegerScores.of(model)
    coef = dict(zip((each.full_name for each in model.features), integers.coef, strict=True))
    terms = []
    for each in (each for each in model.inputs if each.party == party):
        for place, feature in enumerate(each.features):
            if feature is not None and (number := coef[feature.full_name]):
                value = writer.value(each, place, feature)
                # An unknown text: LEAST and GREATEST would pass over its NULL.
                term = f"{number} * {writer.on_grid(value, feature)}"
                terms.append(f"CASE WHEN ({value}) IS NULL THEN NULL ELSE {term} END")
    return "\n  + ".join(terms) or "CAST(0 AS BIGINT)"


def score_script(model: LinearModel, dialect: str = "duckdb") -> str:
    """Return all parties' expressions with what makes a score of their sum, as a SQL text."""
    integers = IntegerScores.of(model)
    lines = [
        f"-- Model {model.job_id[:12]} in {dialect}. Each organization evaluates its expression on",
        "-- its own table; the sum of all parts is a score, an integer:",
        f"--   (sum + {integers.intercept * GRID}) / 2^{integers.bits + GRID.bit_length() - 1}",
        "-- A part is a fact about a person: without masks it shows to whoever receives it.",
    ]
    for party in dict.fromkeys(feature.party for feature in model.features):
        lines += ["", f"-- {party}", f"SELECT {partial_score(model, party, dialect)}"]
        lines += ["AS partial_score", f"FROM {_name(party)};"]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class _Writer:
    """Write the steps of a prediction."""

    dialect: SqlDialect

    def on_grid(self, value: str, feature: ModelFeature) -> str:
        """Return the integer on the grid of a value in the feature's unit."""
        bounds = feature.bounds
        clipped = self._between(value, bounds.low, bounds.high)
        middle, half = self._number(bounds.middle), self._number(bounds.half_width)
        scaled = self._between(f"(({clipped} - {middle}) / {half})", -1.0, 1.0)
        rounded = self.dialect.rounded.format(f"{scaled} * {self._number(float(GRID))}")
        return f"CAST({rounded} AS BIGINT)"

    def value(self, source: Input, place: int, feature: ModelFeature) -> str:
        """Return one column of an encoding, in the feature's unit; a missing value is its fill."""
        encoding, column = source.encoding, _name(source.encoding.source)
        kind, fill = encoding.kind, self._number(feature.fill)
        text = f"trim(CAST({column} AS VARCHAR))"
        # A condition that reads a number comes after those that find texts which are none.
        missing = [self._missing(encoding, column, text)]
        if isinstance(kind, Number):
            rest = self.dialect.number.format(column)
            missing += self._no_value(encoding, rest)
        else:
            rest = self._read(encoding, place, text)
        if feature.name.endswith(MISSING_SUFFIX) and encoding.missing_indicator:
            cases = [
                *((each, self._number(1.0)) for each in missing),
                (f"({rest}) IS NULL", "NULL"),
            ]
            return _cases(cases, self._number(0.0))
        return _cases([(each, fill) for each in missing], rest)

    def _no_value(self, encoding: Encoding, number: str) -> list[str]:
        """Return the conditions under which a number means that there is none."""
        codes = ", ".join(map(self._number, encoding.codes))
        return [self.dialect.nan.format(number), *([f"{number} IN ({codes})"] if codes else [])]

    def _missing(self, encoding: Encoding, column: str, text: str) -> str:
        kind = encoding.kind
        levels = getattr(kind, "levels", ())
        texts = [each for each in encoding.missing if each not in levels]
        found = f"{column} IS NULL"
        if texts:
            found += f" OR {text} IN ({_texts(texts)})"
        if isinstance(kind, Ordinal | Category) and kind.unknown:
            found += f" OR {text} NOT IN ({_texts(levels)})"
        return found

    def _read(self, encoding: Encoding, place: int, text: str) -> str:
        """Return the number that a text gives in one column; NULL if it is not known."""
        kind = encoding.kind
        if isinstance(kind, Bool):
            folded = text if kind.yes else f"lower({text})"
            yes, no = _texts(kind.yes or YES), _texts(kind.no or NO)
            one, none = self._number(1.0), self._number(0.0)
            first = f"WHEN {folded} IN ({yes}) THEN {one}"
            return f"CASE {first} WHEN {folded} IN ({no}) THEN {none} END"
        if isinstance(kind, Ordinal):
            pairs = zip(kind.levels, kind.scale, strict=True)
            cases = " ".join(f"WHEN {_text(level)} THEN {self._number(v)}" for level, v in pairs)
            return f"CASE {text} {cases} END"
        if isinstance(kind, Date):
            return self._days(kind, text)
        if not isinstance(kind, Category):
            raise BadInput(f"column {encoding.name!r} is of a kind that has no SQL")
        return self._level(kind, place, text)

    def _level(self, kind: Category, place: int, text: str) -> str:
        shown = kind.shown[place] if place < len(kind.shown) else None  # the missing indicator
        cases = [
            f"WHEN {_text(level)} THEN {self._number(float(level == shown))}"
            for level in kind.levels
        ]
        rest = f" ELSE {self._number(float(kind.other == shown))}" if kind.other else ""
        return f"CASE {text} {' '.join(cases)}{rest} END"

    def _days(self, kind: Date, text: str) -> str:
        date = f"CAST({text} AS DATE)"
        if kind.format:
            if not self.dialect.days:
                raise BadInput(f"dates in the format {kind.format!r} have no {self.dialect.name}")
            date = self.dialect.days.format(text, _text(kind.format))
        since = f"DATE {_text(kind.reference.isoformat())}"
        return f"CAST({date} - {since} AS {self.dialect.double})"

    def _between(self, value: str, low: float, high: float) -> str:
        return f"LEAST(GREATEST({value}, {self._number(low)}), {self._number(high)})"

    def _number(self, value: float) -> str:
        return f"CAST('{value!r}' AS {self.dialect.double})"  # a literal might be a decimal


def _cases(cases: Iterable[tuple[str, str]], rest: str) -> str:
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in cases)
    return f"CASE {whens} ELSE {rest} END"


def _name(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _text(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _texts(texts: Iterable[str]) -> str:
    return ", ".join(map(_text, texts))
