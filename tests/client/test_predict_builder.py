"""What is wrong with a request for scores is said of the row that is wrong, before it is sent."""

from pathlib import Path

import pytest
from support.predicting import Tabletop, table_of

from colonnade.core.errors import BadInput
from colonnade.methods.prediction.spec import PredictionSpec
from colonnade.wire.notes import advice_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Tabletop:
    folder: Path = tmp_path_factory.mktemp("table")
    return table_of(folder)


def test_a_row_that_no_table_has_is_named(table: Tabletop) -> None:
    last = table.study.offers()[0].population - 1
    spec = table.study.request([last, 0, 0]).method
    assert isinstance(spec, PredictionSpec)
    assert spec.count == 2
    for rows, named in (([3, last + 1], f"row {last + 1}:"), ([3, -2], "row -2:")):
        with pytest.raises(BadInput, match=named) as refused:
            table.study.request(rows)
        assert f"0 to {last}" in str(refused.value)
    with pytest.raises(BadInput, match="at least one"):
        table.study.request([])
    with pytest.raises(BadInput, match="far larger"):
        table.study.request([3, 10**30])


@pytest.mark.parametrize(
    "reason",
    [
        "the policy has no [[predict]] for this coordinator",
        "scores may not go to lab",
        "no [[predict]] names the model ab, nor its job as a whole",
    ],
)
def test_nobody_is_told_to_leave_a_party_out_of_a_prediction(reason: str) -> None:
    told = advice_of(f"party lab refused the job (policy_refused): {reason}")
    assert "grant" in told
    assert "leave" not in told
    assert "leave the party out" in advice_of("party lab refused the job (policy_refused): no")
