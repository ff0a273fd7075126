"""A second evaluation of one prediction is asked for as one, on purpose."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from colonnade.client.client import Client
from colonnade.client.evaluate_builder import EvaluationPlan, submit_evaluation
from colonnade.core.errors import DuplicateJob

RUN = "ab" * 16


class Desk:
    """Take jobs, and a question that was asked before only on purpose."""

    def __init__(self) -> None:
        self.asked = list[Any]()

    def show(self, job: str) -> SimpleNamespace:
        return SimpleNamespace(view=SimpleNamespace(job_id=job))

    def submit(self, job: Any, *, again: bool = False) -> str:
        if job in self.asked and not again:
            raise DuplicateJob("asked before")
        self.asked.append(job)
        return str(job)


@pytest.mark.parametrize("reported", [True, False])
def test_scores_are_measured_a_second_time_only_on_purpose(*, reported: bool) -> None:
    """The first job may have spent and not ended in a report."""
    desk, earlier = Desk(), {"epsilon": 1.0}
    training = SimpleNamespace(view=SimpleNamespace(job_id="cd" * 16))
    plan = SimpleNamespace(training=training, earlier=None, release=lambda run: f"measure {run}")
    asked = cast("Client", desk), cast("EvaluationPlan", plan), RUN
    submit_evaluation(*asked)
    plan.earlier = earlier if reported else None
    with pytest.raises(DuplicateJob):
        submit_evaluation(*asked)
    submit_evaluation(*asked, again=True)
    assert desk.asked == [f"measure {RUN}"] * 2
