"""The rows of `bench vertical --only sealed`: a contract, and medians over fresh seeds."""

import functools

import pytest

from colonnade.bench.vertical import sealed
from colonnade.bench.vertical.methods import Case, Raw, made_table
from colonnade.methods.problem import Loss

FIELDS = [
    "case",
    "nonprivate",
    "central",
    "sketched",
    "sealed",
    "sealed_worst",
    "payload_mb",
    "predicted_mb",
    "seconds",
    "seconds_sketched",
]
CASE = Case("made up", Loss.SQUARED, functools.partial(made_table, "ar", 40, rows=100))


def score(sealed_r2: float, payload: int) -> sealed.SealedScore:
    scores = {
        "nonprivate": 0.8,
        "central_gram": 0.7,
        "central_frank_wolfe": 0.75,
        "sketched": 0.5,
        "sealed": sealed_r2,
    }
    return sealed.SealedScore(scores, payload, payload, 3.0, 1.0)


def test_a_row_has_the_fields_of_the_contract_and_the_better_centralised_method() -> None:
    row = sealed._row(CASE, [score(0.7, 10**6), score(0.6, 2 * 10**6), score(0.74, 10**6)])
    assert [name for name in FIELDS if name not in row] == []
    assert (row["sealed"], row["sealed_worst"], row["central"]) == (0.7, 0.6, 0.75)
    assert row["payload_mb"] == row["predicted_mb"] == 2.0
    assert row["seeds"] == 3


def test_a_full_run_takes_seven_seeds_of_every_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, int]] = []

    def scored(case: Case[Raw], seed: int) -> sealed.SealedScore:
        asked.append((case.name, seed))
        return score(0.7, 1)

    monkeypatch.setattr(sealed, "_scored", scored)
    rows = sealed.sealed_rows(False, None)
    assert len(rows) == 12  # four designs, at 40 and 400 columns and at fewer rows
    assert len(asked) == len(set(asked)) == 7 * 12
    assert {row["seeds"] for row in rows} == {7}
