"""A question that was retried already is not paid for again by mistake."""

import argparse
from types import SimpleNamespace
from typing import Any, Self

import pytest

from colonnade.cli.job import retry
from colonnade.core.errors import BadInput, DuplicateJob

NEW = "cd" * 32


class Coordinator:
    """What ``job retry`` asks of a client; ``asked_before`` refuses as a coordinator does."""

    def __init__(self, asked_before: str, prediction: dict[str, Any] | None = None) -> None:
        self.asked_before, self.prediction = asked_before, prediction
        self.submitted: list[bool] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def show(self, job: str) -> Any:
        return SimpleNamespace(view=SimpleNamespace(job_id=job), again=lambda: "the same question")

    def submit(self, job: Any, *, again: bool = False) -> str:
        assert job == "the same question"
        if self.asked_before and not again:
            raise DuplicateJob(self.asked_before)
        self.submitted.append(again)
        return NEW

    def report(self, job: str) -> Any:
        assert job == NEW
        return SimpleNamespace(document={"prediction": self.prediction})


def options(*, yes: bool = False, watch: bool = False) -> argparse.Namespace:
    return argparse.Namespace(job="ab" * 32, yes=yes, watch=watch, json=False)


def test_a_job_that_was_retried_before_is_asked_about(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = Coordinator("job 37c7aab00467 asked the same; it is finished and cost epsilon 3")
    monkeypatch.setattr(retry, "open_client", lambda _: known)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    with pytest.raises(BadInput, match="--yes"):
        retry.run(options())
    assert known.submitted == []
    assert "it is finished and cost epsilon 3" in capsys.readouterr().err
    assert retry.run(options(yes=True)) == 0
    assert known.submitted == [True]


def test_a_job_that_cost_nothing_is_retried_without_a_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"rows": 200, "receiver": "clinic", "delivered": True}
    known = Coordinator("", found)
    monkeypatch.setattr(retry, "open_client", lambda _: known)
    monkeypatch.setattr(retry, "follow", lambda *_args, **_options: 0)
    assert retry.run(options(watch=True)) == 0
    assert known.submitted == [False]
    assert f"200 scores are at clinic: predictions/{NEW}.csv" in capsys.readouterr().out
