"""A model card in Markdown: what a model is, what it may be used for, and what it cost.

The headings follow Mitchell et al. (2019), Model Cards for Model Reporting; every number is
from the report, and what a report does not know is said to be unknown.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from colonnade.report.schema import Report, read
from colonnade.report.terminal import result_lines, results_of
from colonnade.report.text import at_most, capital, clean, listed, short
from colonnade.report.views.privacy import evaluation_promise

_LOSSES = {
    "squared": "a linear model of a number",
    "logistic": "a linear model of log-odds: it predicts the probability of a class",
    "hinge": "a linear support vector machine: it predicts a class",
}
_MAX_ROWS = 200


def to_card(document: Mapping[str, Any]) -> str:
    """Return the card of the model in a job's or a fit's ``report.json``."""
    report = read(document)
    sections = [_head(report), _use(report), _accuracy(report, document), _privacy(report)]
    return "\n".join([*(line for part in [*sections, _columns(report)] for line in part)]) + "\n"


def _head(report: Report) -> Iterator[str]:
    model = report.model
    label = model.label.name if model else report.name
    yield f"# Model card: {_text(label)}"
    yield ""
    kind = _LOSSES.get(model.loss, report.loss) if model else "no model was fitted"
    yield f"- **What it is**: {kind}; {len(model.features) if model else 0} columns."
    yield f"- **Fitted by**: Colonnade, method {report.method}, job `{report.job_id}`."
    if report.submitted_at:
        yield f"- **When**: {_text(report.submitted_at)}."
    if report.parties:
        yield f"- **Whose columns**: {_text(listed(report.parties))}."
    people = f"{report.n_rows:,d} people" if report.n_rows else f"{report.n_clients:,d} clients"
    yield f"- **About**: {people}; rows and columns stayed with their owners."
    if not report.private:
        yield "- **NOT PRIVATE**: fitted with noise that protects nobody. Publish nothing of it."


def _use(report: Report) -> Iterator[str]:
    yield from ("", "## Use", "")
    yield "- Predictions are associations found in the data, not causes."
    yield "- A prediction is a fact about a person and is not differentially private; an"
    yield "  organization answers only for what its policy grants."
    yield "- Values are clipped to the bounds below: beyond them the model knows nothing."
    yield "- Who is not among the people above was not learned about. Whether the model treats"
    yield "  groups of people alike was not measured."
    if report.unused:
        names = listed([each.party for each in report.unused])
        yield f"- No column of {_text(names)} is used, although it paid for the job."


def _accuracy(report: Report, document: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## How good, and who contributed", "")
    lines = [line.strip() for line in result_lines(results_of(document))]
    yield from (f"- {_text(line)}" for line in lines)
    if report.quality is not None:
        quality = report.quality
        rows = f"{quality.n_rows:,d} {quality.rows} rows"
        yield f"- In this simulation: {quality.metric} {quality.ours:.3f} on {rows}."
    if not lines and report.quality is None:
        yield "- Not measured."


def _privacy(report: Report) -> Iterator[str]:
    yield from ("", "## Privacy", "")
    if report.fit is not None:
        yield _text(report.fit.privacy.statement)
        return
    if (found := report.privacy) is None:
        yield "Nothing is known."
        return
    yield _text(found.statement + evaluation_promise(report))
    yield from ("", "| organization | most, epsilon | spent, epsilon |", "|---|---|---|")
    for each in found.parties:
        most, spent = each.promised.max.epsilon, each.promised.spent.epsilon
        yield f"| {_text(each.party)} | {at_most(most)} | {at_most(spent)} |"
    yield from ("", f"Delta is {short(found.delta, 3)}. {_text(capital(found.bounds_note))}.")


def _columns(report: Report) -> Iterator[str]:
    if (model := report.model) is None:
        return
    yield from ("", "## Columns", "")
    yield "| organization | column | low | high | if missing | coefficient |"
    yield "|---|---|---|---|---|---|"
    ordered = sorted(model.features, key=lambda each: -abs(each.coef_scaled))
    for each in ordered[:_MAX_ROWS]:
        ends = f"{short(each.low)} | {short(each.high)} | {short(each.fill)}"
        yield f"| {_text(each.party)} | {_text(each.name)} | {ends} | {short(each.coef)} |"
    if (more := len(ordered) - _MAX_ROWS) > 0:
        yield from ("", f"{more:,d} more are in model.json.")
    yield from ("", f"Intercept {short(model.intercept)}; coefficients are those of the columns'")
    yield "own units."


def _text(text: str) -> str:
    """Return a name or sentence that Markdown shows as it is, on one line."""
    found = " ".join(clean(text).split())
    return "".join(f"\\{char}" if char in "\\`*_[]<>#|" else char for char in found)
