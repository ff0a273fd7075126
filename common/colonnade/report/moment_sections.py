"""The section of what else a moments job's releases tell."""

from colonnade.report.cost_sections import MAX_LINES, Plots, figures
from colonnade.report.markup import Markup, folded, join, name_of, number, table, tag
from colonnade.report.model_plots import MAX_SHOWN
from colonnade.report.moment_plots import MAX_NAMED, by_size, l1_curves
from colonnade.report.schema import Moments, Report

_NOT_BOUGHT = (
    "There are no intervals and no accuracy: at this budget and number of rows the job bought"
    " nothing about what features of different parties have in common, so errors are unknown."
)
_MAX_ERROR = 0.2
_NOT_TOLD = (
    "The releases say too little to tell how much of the label's variance the model explains: the"
    f" standard error is above {_MAX_ERROR}."
)


def moments_section(report: Report, plots: Plots) -> Markup:
    """Show the L1 path, intervals and correlations that follow from the same releases."""
    moments = report.get("moments")
    if not moments:
        return Markup()
    left_out = moments["left_out"]
    more = f" {left_out:,d} features that have less to do with the label are left out."
    return tag(
        "section",
        tag("h2", "More from the same releases"),
        tag(
            "p",
            "Everything here is computed from what was released, and costs nothing further."
            " Coefficients and correlations are in standard deviations of features and label.",
            more if left_out else "",
        ),
        _explained(moments),
        figures(
            plots,
            {
                "intervals": ("Coefficients with intervals", _interval_caption(moments)),
                "correlations": ("Correlations", _correlation_caption(moments)),
                "l1_path": (
                    "Path: coefficients by penalty",
                    f"The whole L1 path. Named: the largest {MAX_NAMED} at its weak end.",
                ),
            },
        ),
        _interval_table(moments),
        _path_table(moments),
    )


def _explained(moments: Moments) -> Markup:
    found = moments["explained"]
    if found is None:
        return tag("p", _NOT_BOUGHT, class_="note")
    if found["error"] > _MAX_ERROR:
        return tag("p", _NOT_TOLD, class_="note")
    return tag(
        "p",
        "As far as the releases tell, the model explains ",
        number(found["share"], f"{found['share']:.2f}"),
        " ± ",
        number(found["error"], f"{2.0 * found['error']:.2f}"),
        " of the label's variance (two standard errors, which simulations support).",
    )


def _correlation_caption(moments: Moments) -> str:
    between = "known through a few directions"
    if moments["intervals"] is None:
        between = "not bought; drawn is what the label alone would cause"
    return (
        "Blue: positive, orange: negative, blank: none. Framed: within a party, known well."
        f" Outside: between parties, {between}. Rows far out are drawn in before they count, which"
        " takes up to a quarter of a correlation."
    )


def _interval_caption(moments: Moments) -> str:
    found = moments["intervals"]
    if found is None:
        return ""
    return (
        f"{found['level']:.0%} intervals, for rows and privacy noise together. In simulations 95 %"
        " intervals cover 95 % or more of the coefficients, zero or not, of columns that are"
        " independent, correlated alike, have common causes or form a chain over parties."
    )


def _interval_table(moments: Moments) -> Markup:
    found = moments["intervals"]
    if found is None:
        return Markup()
    label = moments["correlations"][-1]
    order = by_size(found["coef"])[:MAX_SHOWN]
    rows = [
        (
            name_of(moments["features"][place]["party"]),
            name_of(moments["features"][place]["name"]),
            *(number(found[key][place]) for key in ("coef", "error", "low", "high")),
            number(label[place]),
        )
        for place in order
    ]
    head = ("party", "feature", "coefficient", "error", "low", "high", "correlation with label")
    more = len(found["coef"]) - len(order)
    note = (
        [tag("p", f"{more:,d} smaller ones are in report.json.", class_="note")] if more > 0 else []
    )
    return folded(
        f"Coefficients without penalty, {found['level']:.0%} intervals",
        table(head, rows, texts=2),
        *note,
    )


def _path_table(moments: Moments) -> Markup:
    curves = l1_curves(moments)[:MAX_NAMED]
    penalties = moments["path"]["penalties"]
    if not curves:
        return Markup()
    head = ["penalty", *(join([name_of(party), ": ", name_of(name)]) for party, name, _ in curves)]
    rows = [
        (number(penalty), *(number(values[place]) for _, _, values in curves))
        for place, penalty in enumerate(penalties[:MAX_LINES])
    ]
    return folded(f"The path of the largest {len(curves)}", table(head, rows, texts=0))
