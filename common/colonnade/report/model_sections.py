"""The sections of the model: coefficients, their path, and a simulation's quality."""

from collections.abc import Mapping
from typing import Any

from colonnade.report.cost_sections import MAX_LINES, Plots, figures
from colonnade.report.markup import Markup, folded, join, name_of, number, table, tag
from colonnade.report.model_plots import (
    CENTRAL,
    LEAST_QUALITY,
    MAX_SHOWN,
    curves_of,
    first_round,
    largest_features,
)
from colonnade.report.schema import Report

_HEAD = ("party", "feature", "scaled", "in the feature's unit", "low", "high", "if missing")
_UNITS = {
    "squared": "change of the label, in its unit, for one unit more of the feature",
    "logistic": "change of the log-odds for one unit more of the feature",
}
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
    used, n_all = largest_features(model), len(model["features"])
    over_clients = report["method"] == "admm"
    unused = [feature for feature in model["features"] if not feature["coef_scaled"]]
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
        tag(
            "p",
            "Scaled: on values clipped to [low, high] and brought to [-1, 1], so what a move from "
            "the middle to an end of the bounds does. Sizes compare between columns with alike "
            "bounds only."
            f" In the feature's unit: {_UNITS[model['loss']]}.",
            class_="muted",
        ),
        figures(
            plots,
            {
                "coef": ("Coefficients", _coef_caption(len(used))),
                "path": (
                    "Path: coefficients by round",
                    f"After each round, on scaled values. {_path_caption(report)}",
                ),
            },
        ),
        _intercepts(model),
        _coefficients(used[:MAX_SHOWN], over_clients=over_clients) if used else Markup(),
        _rest(used[MAX_SHOWN:], "smaller coefficients", over_clients=over_clients),
        _rest(unused, "features with a coefficient of zero", over_clients=over_clients),
        _path_table(report),
    )


def _so_far(report: Report) -> str:
    if report["state"] == "finished":
        return ""
    rounds = report["rounds"]
    return f" This is the model so far, after {rounds['done']} of {rounds['planned']} rounds."


def _coef_caption(n_used: int) -> str:
    more = n_used - MAX_SHOWN
    shown = f"The largest {MAX_SHOWN}; {more:,d} more are smaller."
    return shown if more > 0 else f"All {n_used:,d}, the largest first."


def _path_caption(report: Report) -> str:
    more = len(curves_of(report)) - MAX_SHOWN
    shown = "Named: the largest at the end; thin: others."
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


def _coefficients(features: list[Mapping[str, Any]], *, over_clients: bool) -> Markup:
    return table(
        _HEAD,
        [
            (
                "every client" if over_clients else name_of(feature["party"]),
                name_of(feature["name"]),
                *(number(feature[key]) for key in ("coef_scaled", "coef", "low", "high", "fill")),
            )
            for feature in features
        ],
        texts=2,
    )


def _rest(features: list[Mapping[str, Any]], what: str, *, over_clients: bool) -> Markup:
    if not features:
        return Markup()
    more = len(features) - MAX_LINES
    note = [tag("p", f"{more:,d} more are in model.json.", class_="note")] if more > 0 else []
    shown = _coefficients(features[:MAX_LINES], over_clients=over_clients)
    return folded(f"{len(features):,d} {what}", shown, *note)


def _path_table(report: Report) -> Markup:
    curves = curves_of(report)[:MAX_SHOWN]
    points = report["path"]
    if not curves:
        return Markup()
    n_lines = max(1, 10 * MAX_LINES // len(curves))
    names = [
        name_of(name) if report["method"] == "admm" else join([name_of(party), ": ", name_of(name)])
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
    return folded("Scaled coefficients after each round", table(head, rows, texts=0), *note)


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
