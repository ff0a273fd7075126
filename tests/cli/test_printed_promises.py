"""A printed price says what it rests on, and prices that do not add up are added for the reader."""

from typing import Any

import pytest

from colonnade.cli.telling import align_lines, evaluation_lines, plan_lines
from colonnade.cli.text import plan_text
from colonnade.privacy.accounting import epsilon_of
from colonnade.report.terminal import result_lines

PLAN: dict[str, Any] = {"label": "cost", "joint_max_epsilon": 2.0, "promise": ""}


def test_a_plan_says_that_its_prices_hold_against_everybody_unless_a_method_says_otherwise() -> (
    None
):
    assert "whatever all others know and do together" in plan_text(PLAN)
    sealed = plan_text(PLAN | {"promise": "holds if peers follow"})
    assert "holds if peers follow" in sealed
    assert "whatever all others" not in sealed


def test_a_job_without_a_label_is_not_said_to_be_private() -> None:
    assert "differential privacy" not in plan_text(PLAN | {"label": "", "joint_max_epsilon": 0.0})


def test_the_price_of_a_fit_and_its_evaluation_is_told_as_one_epsilon() -> None:
    report = {
        "evaluation": {
            "metric": "auc",
            "value": 0.8,
            "error": 0.02,
            "epsilon": 2.269,
            "spent": {"units": 0, "rho": 0.1112, "epsilon": 2.269},
        },
        "privacy": {"delta": 1e-6, "joint": {"spent": {"rho": 0.5154, "epsilon": 5.312}}},
    }
    told = " ".join(evaluation_lines(report, "hospital"))
    both = epsilon_of(0.5154 + 0.1112, 1e-6)
    assert 5.312 < both < 5.312 + 2.269
    assert f"epsilon {both:.3f}"[:-1] in told
    assert "7.5" not in told


def test_steps_of_the_story_name_the_premise_of_their_prices() -> None:
    names = [["a"], ["b"], ["c"], ["a", "b"], ["a", "c"], ["b", "c"], ["a", "b", "c"]]
    overlap = [{"parties": each, "people": 5, "error": 34.0} for each in names]
    alignment = {"name": "ab" * 32, "kept": 5, "overlap": overlap}
    told = " ".join(align_lines({"uplink": {"payload_bytes": 9}, "alignment": alignment}))
    assert "if the parties follow the protocol" in told
    assert "± one standard deviation" in told
    assert told.count("about 5") == len(names)
    assert "party ingest" not in told
    evaluation = {"epsilon": 1.0, "expected_error": 0.1}
    plan = {"method": "moments", "rounds": 2, "evaluation": evaluation}
    assert "whatever all others do" in " ".join(plan_lines("ab" * 32, plan, 2.0, "hospital"))


@pytest.mark.parametrize("held_out", [True, False])
def test_an_estimate_from_releases_is_not_said_to_be_measured(held_out: bool) -> None:
    evaluation = {"metric": "r2", "value": 0.5, "error": 0.01, "epsilon": 1.0, "n_rows": 7}
    results = {
        "explained": {"share": 0.6, "error": 0.02},
        "contribution": None,
        "evaluation": evaluation if held_out else None,
    }
    told = " ".join(result_lines(results))
    assert ("estimated from the fit's own releases" in told) is not held_out
    assert "nobody was kept out" not in told  # some may have been, for an evaluation to come
