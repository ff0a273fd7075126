"""The page of a fit that people read: for a data-protection officer first."""

from collections.abc import Mapping
from typing import Any

from colonnade.report.cost_sections import MAX_LINES, figures
from colonnade.report.fit.plots import draw_plots, named_features
from colonnade.report.fit.settings import settings_section
from colonnade.report.html import NO_PLOTS, page
from colonnade.report.markup import (
    Markup,
    at_most,
    folded,
    name_of,
    number,
    short,
    table,
    tag,
)
from colonnade.report.model_plots import MAX_SHOWN, largest_features

_UNITS = {
    "squared": "change of the label, in its unit, for one unit more of the feature",
    "logistic": "change of the log-odds for one unit more of the feature",
    "hinge": "change of the score, whose sign is the class, for one unit more of the feature",
}
_MODELS = {
    "squared": "Linear regression",
    "logistic": "Logistic regression",
    "hinge": "Linear support vector machine",
}
_KINDS = {
    "smoothness": "mean squares of the columns",
    "select": "which coordinate to move",
    "step": "noisy derivatives, or sums of clipped rows",
}
_WORDS = (
    (
        "epsilon, delta",
        (
            "Seeing the model and this page, nobody can raise the odds of any claim about one row"
            " by more than a factor of e^epsilon, except with probability about delta."
        ),
    ),
    ("rho", "The same promise in the unit in which it adds up (zero-concentrated privacy)."),
    (
        "release",
        (
            "Integers that depend on the rows, with noise added before anybody sees them. The model"
            " and all plots here are made of releases and public numbers."
        ),
    ),
    (
        "not covered",
        (
            "Public by declaration: the number of rows, names and bounds of columns, the settings."
            " What people do with predictions is outside the promise."
        ),
    ),
)


def render(report: Mapping[str, Any]) -> str:
    """Return the whole page; it needs nothing but itself."""
    drawn = draw_plots(report)
    plots = drawn or {}
    return page(
        f"{_MODELS[report['model']['loss']]} of {report['model']['label']['name']}: Colonnade fit",
        _alarm(report),
        _headline(report),
        Markup() if drawn is not None else tag("p", NO_PLOTS, class_="note"),
        _privacy(report),
        _convergence(report["path"], plots),
        _model(report, plots),
        settings_section(report),
        tag("section", tag("h2", "Words"), table(("word", "meaning"), _WORDS, texts=2)),
    )


def _alarm(report: Mapping[str, Any]) -> Markup:
    if report["privacy"]["private"]:
        return Markup()
    return tag(
        "div",
        tag("strong", "NOT PRIVATE"),
        tag(
            "p",
            "The noise of this fit was not exact and secret. The amounts below are what the same"
            " fit would cost; nothing here protects anybody. Publish nothing of it.",
        ),
        class_="alarm",
        role="alert",
    )


def _headline(report: Mapping[str, Any]) -> Markup:
    privacy, model = report["privacy"], report["model"]
    used = largest_features(model)
    epsilon = at_most(privacy["epsilon"])
    promised = [
        (number(privacy["epsilon"], f"ε ≤ {epsilon}"), "promised"),
        (number(privacy["delta"], f"δ = {short(privacy['delta'], 3)}"), "at which it holds"),
    ]
    nothing = [(number(privacy["epsilon"], "no ε"), f"ε ≤ {epsilon} with exact noise")]
    tiles = [
        *(promised if privacy["private"] else nothing),
        (number(report["n_rows"]), "rows"),
        (
            number(len(used)),
            f"of {len(model['features']):,d} features have a coefficient",
        ),
        (number(report["path"]["steps"][-1]), "steps"),
    ]
    items = [tag("li", tag("b", figure), tag("span", text)) for figure, text in tiles]
    return tag(
        "header",
        tag("h1", f"{_MODELS[model['loss']]} of ", name_of(model["label"]["name"])),
        tag(
            "p",
            "run ",
            name_of(report["name"]),
            ", id ",
            tag("code", report["job_id"]),
            class_="muted",
        ),
        tag("p", privacy["statement"], class_="promise"),
        tag("ul", *items, class_="tiles"),
    )


def _privacy(report: Mapping[str, Any]) -> Markup:
    privacy, ledger = report["privacy"], report["ledger"]
    rows = [
        (
            each["kind"],
            _KINDS.get(each["kind"], ""),
            each["mechanism"].replace("_", " "),
            _noise(each),
            number(each["count"]),
            number(each["touches"]),
        )
        for each in privacy["releases"]
    ]
    facts = [
        ("neighbours", privacy["neighbours"]),
        ("rho", "none: secret batches" if privacy["rho"] is None else number(privacy["rho"])),
        ("rho that a ledger charges for it", number(privacy["charged_rho"])),
        *_sampling(privacy),
    ]
    if ledger is not None:
        facts += [
            ("ledger", tag("code", ledger["ledger_id"])),
            ("charged now, rho", number(ledger["charged_now_rho"])),
            ("left under its cap, rho", number(ledger["left_rho"])),
        ]
    return tag(
        "section",
        tag("h2", "Privacy"),
        table(("", ""), facts, texts=2),
        tag("h3", "What was released"),
        table(
            (
                "kind",
                "what",
                "mechanism",
                "noise / sensitivity",
                "releases",
                "that one row affects",
            ),
            rows,
            texts=3,
        ),
    )


def _sampling(privacy: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """Return what there is to say about secret batches: nothing if all rows are in all."""
    if privacy["sampling_rate"] == 1.0:
        return []
    facts = [("a row is in a batch with probability", number(privacy["sampling_rate"]))]
    amplified = privacy["amplified_epsilon"]
    if amplified is None:
        return facts
    return [
        *facts,
        (
            "epsilon if nobody learns who was in which batch; the charge takes no credit for that",
            number(amplified, at_most(amplified)),
        ),
    ]


def _noise(release: Mapping[str, Any]) -> Markup:
    """Return the scale of the noise over what one row can change."""
    if "sigma2" in release:
        return number((release["sigma2"] / release["l2_sensitivity2"]) ** 0.5)
    moved = release.get("sensitivity", release.get("l1_sensitivity"))
    return number(release["scale"] / moved)


def _convergence(path: Mapping[str, Any], plots: Mapping[str, Markup]) -> Markup:
    named = len(named_features(path))
    told = f" Named are the {named} largest at the end." if named < len(path["features"]) else ""
    shown = figures(
        plots,
        {
            "path": ("Path: coefficients by step", f"On scaled values.{told}"),
            "distance": (
                "Distance to the final model",
                (
                    "Relative to its size, without the last step, where it is zero. Steep to the"
                    " end: the model was still on its way, or each step's noise is large."
                ),
            ),
        },
    )
    if not shown:
        return Markup()
    return tag(
        "section",
        tag("h2", "Convergence"),
        tag(
            "p",
            "Made of the releases alone. The objective itself is not shown: it depends on the rows"
            " and would have to be paid for.",
            class_="muted",
        ),
        shown,
    )


def _model(report: Mapping[str, Any], plots: Mapping[str, Markup]) -> Markup:
    model = report["model"]
    used = largest_features(model)
    unused = [feature for feature in model["features"] if not feature["coef_scaled"]]
    label = model["label"]
    more = len(used) - MAX_SHOWN
    caption = (
        f"The largest {MAX_SHOWN}; {more:,d} more are smaller." if more > 0 else "All of them."
    )
    return tag(
        "section",
        tag("h2", "Model"),
        tag(
            "p",
            "A linear model of ",
            name_of(label["name"]),
            f" ({report['loss']} loss). Scaled: on values clipped to [low, high] and brought to"
            " [-1, 1], so what a move from the middle to an end of the bounds does; no deviations"
            " were released, so sizes compare only between features whose values fill their bounds"
            f" alike. In the feature's unit: {_UNITS[model['loss']]}.",
        ),
        figures(plots, {"coef": ("Coefficients", caption)}),
        table(
            ("", "scaled", "in units", "label's low", "label's high"),
            [
                (
                    "intercept",
                    *(number(model[key]) for key in ("intercept_scaled", "intercept")),
                    *(number(label[key]) for key in ("low", "high")),
                )
            ],
        ),
        _coefficients(used[:MAX_SHOWN]) if used else Markup(),
        _rest(used[MAX_SHOWN:], "Smaller coefficients"),
        _rest(unused, "Features with a coefficient of zero"),
    )


def _coefficients(features: list[Mapping[str, Any]]) -> Markup:
    keys = ("coef_scaled", "coef", "low", "high")
    rows = [
        (name_of(feature["name"]), *(number(feature[key]) for key in keys)) for feature in features
    ]
    return table(("feature", "scaled", "in the feature's unit", "low", "high"), rows)


def _rest(features: list[Mapping[str, Any]], what: str) -> Markup:
    if not features:
        return Markup()
    return folded(f"{what}: {len(features):,d}", _coefficients(features[:MAX_LINES]))
