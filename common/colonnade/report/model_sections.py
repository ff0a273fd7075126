"""The sections of the model: coefficients, their path, and a simulation's quality."""

from collections.abc import Mapping
from typing import Any

from colonnade.report.cost_sections import MAX_LINES, Plots, figures
from colonnade.report.markup import Markup, folded, join, name_of, number, table, tag
from colonnade.report.model_plots import (
    CENTRAL,
    LEAST_QUALITY,
    MAX_SHOWN,
    compared,
    curves_of,
    features_of,
    first_round,
)
from colonnade.report.schema import Quality, Report, is_over_clients

_HEAD = ("in the feature's unit", "scaled", "low", "high", "if missing")
_PER_DEVIATION = ("per deviation", "deviation")
_CHANGES = {"squared": "change of the label, in its unit,", "logistic": "change of the log-odds"}
_SCALED = (
    " Scaled: on values clipped to [low, high] and brought to [-1, 1], so what a move from the"
    " middle to an end of the bounds does"
)
_METRICS = {"r2": "R² (share of variance explained)", "auc": "AUC (area under the ROC curve)"}
_ROWS = {
    "held-out": "rows that were held out of everything",
    "fitted": "rows that the model was fitted to, which flatters it",
}


def model_section(report: Report, plots: Plots) -> Markup:
    """Show the coefficients, scaled and in the users' units."""
    heading = tag("h2", "Model")
    model = report["model"]
    if model is None:
        return tag("section", heading, tag("p", "There is no model: no round was completed."))
    features, n_all = features_of(report), len(model["features"])
    used = [feature for feature in features if feature["coef_scaled"]]
    unused = [feature for feature in features if not feature["coef_scaled"]]
    return tag(
        "section",
        heading,
        tag(
            "p",
            "A linear model of ",
            name_of(model["label"]["name"]),
            f" ({model['loss']} loss): {len(used):,d} of {n_all:,d} features have a coefficient.",
            _so_far(report),
        ),
        tag("p", _scales(report), class_="muted"),
        figures(
            plots,
            {
                "coef": ("Coefficients", _coef_caption(report, used)),
                "path": (
                    "Path: coefficients by round",
                    f"After each round, {_on(report)}. {_path_caption(report)}",
                ),
            },
        ),
        _intercepts(model),
        _coefficients(report, used[:MAX_SHOWN]) if used else Markup(),
        _rest(report, used[MAX_SHOWN:], "smaller coefficients"),
        _rest(report, unused, "features with a coefficient of zero"),
        _path_table(report),
    )


def _scales(report: Report) -> str:
    """Say what each kind of coefficient counts, and which of them compare."""
    changes = _CHANGES[report["loss"]]
    unit = f"In the feature's unit: {changes} for one unit more of the feature."
    if compared(report):
        return (
            f"Per deviation: {changes} for one standard deviation more of the feature, so that"
            " sizes compare between features. Deviations are those of clipped values, as releases"
            " tell them, with their noise; where noise hides one there is a dash. "
            f"{unit}{_SCALED}; its size depends on the bounds."
        )
    return (
        f"{unit}{_SCALED}. This job released no deviations of features, so sizes compare only"
        " between features whose values fill their bounds alike."
    )


def _on(report: Report) -> str:
    return "per deviation" if compared(report) else "on scaled values"


def _so_far(report: Report) -> str:
    if report["state"] == "finished":
        return ""
    rounds = report["rounds"]
    return f" This is the model so far, after {rounds['done']} of {rounds['planned']} rounds."


def _coef_caption(report: Report, used: list[Mapping[str, Any]]) -> str:
    drawn = sum(1 for feature in used if feature["size"])
    more, hidden = drawn - MAX_SHOWN, len(used) - drawn
    shown = f"The largest {MAX_SHOWN}; {more:,d} more are smaller."
    shown = shown if more > 0 else f"All {drawn:,d}, the largest first."
    if not compared(report):
        return f"On scaled values, whose size depends on the bounds. {shown}"
    if hidden and more <= 0:
        shown = f"{drawn:,d} of {len(used):,d}, the largest first."
    told = f"{_CHANGES[report['loss']].capitalize()} for one standard deviation more. {shown}"
    return f"{told} Noise hides the deviation of {hidden:,d} more." if hidden else told


def _path_caption(report: Report) -> str:
    more = len(curves_of(report)) - MAX_SHOWN
    shown = "Named: the largest at the end; thin: others."
    if any(feature["size"] is None for feature in features_of(report)):
        shown += " Without features whose deviation noise hides."
    return f"{shown} {more:,d} smaller ones are not drawn." if more > 0 else shown


def _intercepts(model: Mapping[str, Any]) -> Markup:
    label = model["label"]
    return table(
        ("", "scaled", "in units", "label's low", "label's high"),
        [
            (
                "intercept",
                number(model["intercept_scaled"]),
                number(model["intercept"]),
                number(label["low"]),
                number(label["high"]),
            )
        ],
    )


def _coefficients(report: Report, features: list[Mapping[str, Any]]) -> Markup:
    over_clients, per = is_over_clients(report), compared(report)
    keys = (*(("size", "deviation") if per else ()), "coef", "coef_scaled", "low", "high", "fill")

    def cell(value: float | None) -> str:
        return "–" if value is None else number(value)

    return table(
        ("party", "feature", *(_PER_DEVIATION if per else ()), *_HEAD),
        [
            (
                "every client" if over_clients else name_of(feature["party"]),
                name_of(feature["name"]),
                *(cell(feature[key]) for key in keys),
            )
            for feature in features
        ],
        texts=2,
    )


def _rest(report: Report, features: list[Mapping[str, Any]], what: str) -> Markup:
    if not features:
        return Markup()
    more = len(features) - MAX_LINES
    note = [tag("p", f"{more:,d} more are in model.json.", class_="note")] if more > 0 else []
    shown = _coefficients(report, features[:MAX_LINES])
    return folded(f"{len(features):,d} {what}", shown, *note)


def _path_table(report: Report) -> Markup:
    curves = curves_of(report)[:MAX_SHOWN]
    points = report["path"]
    if not curves:
        return Markup()
    n_lines = max(1, 10 * MAX_LINES // len(curves))
    names = [
        name_of(name) if is_over_clients(report) else join([name_of(party), ": ", name_of(name)])
        for party, name, _ in curves
    ]
    head = ["round", *names]
    rows = [
        (number(point["round"]), *(number(values[place]) for _, _, values in curves))
        for place, point in enumerate(points[:n_lines])
    ]
    more = len(points) - n_lines
    note = (
        [tag("p", f"{more:,d} more rounds are in report.json.", class_="note")] if more > 0 else []
    )
    title = f"Coefficients after each round, {_on(report)}"
    return folded(title, table(head, rows, texts=0), *note)


def _probabilities(quality: Quality) -> Markup:
    found = quality.get("probabilities")
    if found is None:
        return Markup()
    return tag(
        "p",
        f"The mean probability is {found['mean_probability']:.3f}, the base rate"
        f" {found['base_rate']:.3f}; the log loss {found['log_loss']:.3f}, and"
        f" {found['base_rate_log_loss']:.3f} for the base rate alone.",
    )


def quality_section(report: Report, plots: Plots) -> Markup:
    """Show how good the model is, which only a simulation can tell."""
    quality = report["quality"]
    if quality is None:
        return Markup()
    rounds = enumerate(quality["by_round"], start=first_round(report))
    others = quality.get("others", ())
    caption = "Dashed and dotted: the two references."
    if min(quality["by_round"], default=0.0) < LEAST_QUALITY:
        caption += f" What is below {LEAST_QUALITY:g} is not drawn."
    return tag(
        "section",
        tag("h2", "Quality", tag("span", "simulation only", class_="badge failed")),
        tag(
            "p",
            f"{_METRICS[quality['metric']]}, computed on ",
            number(quality["n_rows"]),
            f" {_ROWS[quality['rows']]}, from the plain data, which only a simulation has. A real"
            " job's report has no such numbers: they would be releases of their own.",
        ),
        table(
            ("model", quality["metric"], *(each["metric"] for each in others)),
            [
                ("this job", number(quality["ours"]), *(number(e["ours"]) for e in others)),
                (CENTRAL, number(quality["central"]), *(number(e["central"]) for e in others)),
                (
                    "not private",
                    number(quality["nonprivate"]),
                    *(number(each["nonprivate"]) for each in others),
                ),
            ],
        ),
        _probabilities(quality),
        tag("p", quality["central_is"], class_="note"),
        tag("p", quality["nonprivate_is"], class_="note"),
        figures(plots, {"quality": ("By round", caption)}),
        folded(
            "Quality after each round",
            table(
                ("model", quality["metric"]), [(f"after round {n}", number(q)) for n, q in rounds]
            ),
        ),
    )
