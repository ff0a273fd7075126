"""Ids as people write them, brought into one form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.methods.alignment.normalise import (
    MAX_ID_BYTES,
    IdColumn,
    IdRule,
    Repeated,
    UnicodeForm,
    prepare,
)
from colonnade.methods.alignment.refusals import RepeatedIds, UnusableIds

PLAIN = IdColumn()
FOLDED = IdColumn(fold_case=True)
DIGITS = IdColumn(digits_only=True)
NUMBER = IdColumn(number=True)
EXACT = IdColumn(form=UnicodeForm.NONE, trim=False)


@pytest.mark.parametrize(
    ("column", "raw", "form"),
    [
        (PLAIN, "  7 ", "7"),
        (PLAIN, "\ufeff\u200b7\u00a0", "7"),  # byte-order mark, zero-width and no-break space
        (PLAIN, "７８", "78"),
        (PLAIN, "ﬁ", "fi"),
        (PLAIN, "A  \t b", "A b"),
        (PLAIN, "007", "007"),
        (PLAIN, "\r\n", ""),
        (FOLDED, "STRASSE", "strasse"),
        (FOLDED, "straße", "strasse"),
        (FOLDED, "İstanbul", "i̇stanbul"),
        (FOLDED, "ΣΑΣ", "σασ"),
        (FOLDED, "ͅ", "ι"),
        (DIGITS, "943-476 5919", "9434765919"),
        (DIGITS, "٠١٢", "012"),
        (DIGITS, "x²", "2"),  # NFKC makes it a digit
        (IdColumn(form=UnicodeForm.NFC, digits_only=True), "x²", ""),
        (NUMBER, "P-00417", "417"),
        (NUMBER, " 417.0 ", "417"),  # not 4170, who is somebody else
        (NUMBER, "417.00", "41700"),
        (NUMBER, "12.000", "12000"),
        (NUMBER, "000", "0"),
        (NUMBER, "4.17E+5", ""),
        (NUMBER, "none", ""),
        (IdColumn(form=UnicodeForm.NFC), "e\u0301", "é"),
        (IdColumn(form=UnicodeForm.NFC), "７", "７"),
        (EXACT, " e\u0301 ", " e\u0301 "),
    ],
)
def test_ugly_ids_have_one_form(column: IdColumn, raw: str, form: str) -> None:
    assert column.apply(raw) == form


@pytest.mark.slow
@given(
    st.text(max_size=20),
    st.builds(IdColumn, st.sampled_from(UnicodeForm), *[st.booleans()] * 4),
)
def test_a_form_is_its_own_form(raw: str, column: IdColumn) -> None:
    once = column.apply(raw)
    assert column.apply(once) == once


@pytest.mark.slow
@given(st.text(max_size=20))
def test_case_and_composition_make_no_difference(raw: str) -> None:
    import unicodedata

    assert FOLDED.apply(raw) == FOLDED.apply(unicodedata.normalize("NFD", raw))
    assert FOLDED.apply(raw) == FOLDED.apply(raw.casefold())


@pytest.mark.slow
@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), min_size=2, unique=True))
def test_joined_columns_stay_apart(rows: list[tuple[str, str]]) -> None:
    rule = IdRule((EXACT, EXACT))
    encoded = [rule.encode(row) for row in rows]
    usable = [each for each in encoded if each is not None]
    assert len(set(usable)) == len(usable)


def test_a_border_between_columns_cannot_be_moved() -> None:
    rule = IdRule((PLAIN, PLAIN))
    assert rule.encode(("ab", "c")) != rule.encode(("a", "bc"))
    assert rule.encode(("1970-01-01", "Ada")) == rule.encode((" 1970-01-01", "Ada "))


@pytest.mark.parametrize("raw", [None, "", "  ", "\ud800", "x" * (MAX_ID_BYTES + 1)])
def test_what_is_no_id_is_left_out_and_counted(raw: str | None) -> None:
    assert IdRule().encode((raw,)) is None
    made = prepare([("a",), (raw,), ("b",)], IdRule())
    assert (made.index, made.unusable) == ((0, 2), 1)
    with pytest.raises(UnusableIds):
        prepare([(raw,)], IdRule())


def test_repeated_ids_are_refused_with_their_number_or_the_first_counts() -> None:
    rows = [("Ann",), ("ann ",), ("Bob",), ("ANN",)]
    with pytest.raises(RepeatedIds, match="2 rows") as refused:
        prepare(rows, IdRule((FOLDED,)))
    assert "ann" not in str(refused.value).lower()
    made = prepare(rows, IdRule((FOLDED,), Repeated.FIRST))
    assert (made.index, made.repeated) == ((0, 2), 2)


def test_a_row_of_another_width_is_a_mistake_in_code() -> None:
    with pytest.raises(ValueError, match="values"):
        IdRule().encode(("a", "b"))
    with pytest.raises(ValueError, match="columns"):
        IdRule(())
