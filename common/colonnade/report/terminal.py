"""A report in a few lines of a terminal: accuracy, and each party's contribution."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from colonnade.report.schema_parts import MomentsExplained, Value
from colonnade.report.schema_results import Contribution, Evaluation
from colonnade.report.text import NORMAL_95, epsilon_up
from colonnade.report.views.contributors import NOTHING_BETWEEN, nothing_between
from colonnade.report.views.quality import METRICS, VAGUE, accuracy

_INDENT = " " * 11


class Results(Value, frozen=True):
    """What a finished job knows of its model's accuracy, and of each party's part in it."""

    explained: MomentsExplained | None = None
    contribution: dict[str, Contribution] | None = None
    evaluation: Evaluation | None = None


def results_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results in a report's object; None for what it does not know.

    Examples
    --------
    >>> results_of({"moments": None, "contribution": None})
    {'explained': None, 'contribution': None, 'evaluation': None}
    """
    moments = report.get("moments") or {}
    return {
        "explained": moments.get("explained"),
        "contribution": report.get("contribution"),
        "evaluation": report.get("evaluation"),
    }


def result_lines(results: Mapping[str, Any]) -> Iterator[str]:
    """Describe how good the model is and what each party's columns add, from `results_of`."""
    found = msgspec.convert({name: results[name] for name in Results.__struct_fields__}, Results)
    yield from _accuracy_lines(found)
    yield from _party_lines(found.contribution or {})


def _accuracy_lines(results: Results) -> Iterator[str]:
    found = accuracy(results.evaluation, results.explained)
    if found is None:
        return
    metric = METRICS.get(found.metric, found.metric)
    told = f"  accuracy {metric} {found.value:.3f} ± {found.error:.3f} (95 %)"
    if (evaluation := results.evaluation) is not None:
        on = f"on about {evaluation.n_rows} people kept out, released by {evaluation.party}"
        yield f"{told} {on} for {epsilon_up(evaluation.epsilon)}"
        if found.vague:
            yield f"{_INDENT}{VAGUE}"
    else:
        yield f"{told}, estimated from the fit's own releases, not on people kept out of it"


def _party_lines(contribution: Mapping[str, Contribution]) -> Iterator[str]:
    if len(contribution) < 2:
        return
    unknown = nothing_between(contribution)
    what = "alone" if unknown else "alone and lost without it"
    yield f"  explains share of the label's variance, {what} (95 %)"
    for party, each in contribution.items():
        yield f"{_INDENT}{party}: {_shares(each)}"
    if unknown:
        yield f"{_INDENT}{NOTHING_BETWEEN}"


def _shares(found: Contribution) -> str:
    told = f"alone {_with_error(found.alone, found.alone_error)}"
    if found.lost is not None:
        told += f", lost {_with_error(found.lost, found.lost_error)}"
    return told


def _with_error(value: float, error: float | None) -> str:
    return f"{value:.2f}" if error is None else f"{value:.2f} ± {NORMAL_95 * error:.2f}"
