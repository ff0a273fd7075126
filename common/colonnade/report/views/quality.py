"""How good the model is: on held-out people, from the releases, or in a simulation."""

from dataclasses import dataclass

from colonnade.report.parts import (
    Block,
    Cell,
    Chart,
    Column,
    Fact,
    Facts,
    Grid,
    Line,
    Note,
    Point,
    Row,
    Section,
    Table,
)
from colonnade.report.plots import HEIGHT, Curve, Scale, covering, line_chart, share_strip
from colonnade.report.schema import Report
from colonnade.report.schema_parts import MomentsExplained, Quality
from colonnade.report.schema_results import CalibrationGroup, Evaluation
from colonnade.report.text import NORMAL_95, capital, count, epsilon_up, readable, short
from colonnade.report.views.cells import number, plain_table

MIN_DRAWN = -1.0
"""Where the plot of quality ends: a first step may be far worse, and would flatten the rest."""

VAGUE = "Its noise hides how good the model is: more epsilon, or more people kept out, would tell."
CENTRAL = "private, all data in one place"
_MAX_ERROR = 0.2  # a standard error beyond which a metric says nothing of a model
METRICS = {"r2": "R²", "auc": "AUC"}
_LONG = {"r2": "R² (share of variance explained)", "auc": "AUC (area under the ROC curve)"}
_ROWS = {
    "held-out": "rows that were held out of everything",
    "fitted": "rows that the model was fitted to, which flatters it",
}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How good the model is known to be; ``error`` is half a 95 % interval."""

    metric: str
    value: float
    error: float
    held_out: bool

    @property
    def range(self) -> tuple[float, float]:
        """The interval, within what the metric can be."""
        return max(0.0, self.value - self.error), min(1.0, self.value + self.error)

    @property
    def vague(self) -> bool:
        """Whether the error hides what the value is."""
        return self.error > NORMAL_95 * _MAX_ERROR


def accuracy_of(report: Report) -> Accuracy | None:
    """Return what a real job knows of its accuracy; None if it is not known or too vague."""
    return accuracy(report.evaluation, report.moments.explained if report.moments else None)


def accuracy(found: Evaluation | None, explained: MomentsExplained | None) -> Accuracy | None:
    """Return the released accuracy or, without one, an estimate from the other releases."""
    if found is not None:
        return Accuracy(found.metric, found.value, NORMAL_95 * found.error, held_out=True)
    if explained is None or explained.error > _MAX_ERROR:
        return None
    if explained.auc is not None and explained.auc_error is not None:
        error = NORMAL_95 * explained.auc_error
        return Accuracy("auc", explained.auc, error, held_out=False)
    return Accuracy("r2", explained.share, NORMAL_95 * explained.error, held_out=False)


def quality_section(report: Report) -> Section | None:
    """Show the released accuracy, the one estimated from releases, and a simulation's."""
    blocks: list[Block] = []
    if report.evaluation is not None and _telling(report, report.evaluation):
        blocks.append(_calibration(report, report.evaluation))
    if facts := _facts(report):
        blocks.append(Facts(tuple(facts), "Measures"))
    blocks += _simulated(report, report.quality) if report.quality else []
    if not blocks:
        return None
    first = len(blocks) % 2  # an odd one stands alone
    pairs = [Grid(tuple(blocks[place : place + 2])) for place in range(first, len(blocks), 2)]
    blocks = [*blocks[:first], *pairs]
    return Section("good", "How good it is", "How good", (_lead(report),), tuple(blocks))


def _lead(report: Report) -> str:
    found = report.evaluation
    if found is not None:
        who = (
            f"{capital(found.party)}, who holds the label," if found.party else "The label's owner"
        )
        people = f"About {found.n_rows:,d} people" if found.n_rows else "Some people"
        said = f"{people} were kept out of the fit, by a public rule. {who} released the result."
        known = accuracy_of(report)
        return f"{said} {VAGUE}" if known is not None and known.vague else said
    if accuracy_of(report) is not None:
        return (
            "Estimated from the fit's own releases, at no further cost; it was not measured on"
            " people kept out of the fit."
        )
    if report.moments is not None and report.moments.explained is not None:
        return (
            "The releases say too little to tell how much of the label's variance the model"
            f" explains: the standard error is above {_MAX_ERROR}."
        )
    return "How good the model is was not measured: that would be a release of its own."


def _facts(report: Report) -> list[Fact]:
    facts, found = [], report.evaluation
    if found is not None:
        error = NORMAL_95 * found.error
        name = f"Held-out {METRICS.get(found.metric, found.metric)}"
        facts.append(Fact(name, f"{found.value:.3f} ± {error:.3f} (95 %)", found.value))
        if found.log_loss is not None:
            text = short(found.log_loss, 3)
            if found.log_loss_error is not None:
                text += f" ± {short(NORMAL_95 * found.log_loss_error, 2)} (95 %)"
            facts.append(Fact("Log-loss", text, found.log_loss))
        facts.append(Fact("Paid for", f"{epsilon_up(found.epsilon)}", found.epsilon))
    explained = report.moments.explained if report.moments else None
    if explained is not None and explained.error <= _MAX_ERROR:
        error = NORMAL_95 * explained.error
        text = f"R² {explained.share:.2f} ± {error:.2f} (95 %), at no further cost"
        facts.append(Fact("From the releases", text, explained.share))
        facts.append(Fact("Its standard error", short(explained.error), explained.error))
        if explained.auc is not None and explained.auc_error is not None:
            error = NORMAL_95 * explained.auc_error
            text = f"AUC {explained.auc:.2f} ± {error:.2f} (95 %), for normal scores"
            facts.append(Fact("The same as AUC", text, explained.auc))
        facts.append(Fact("Always guess the mean", "R² 0"))
    return facts


def _telling(report: Report, found: Evaluation) -> list[CalibrationGroup]:
    """Return the groups of which the release tells more than that labels lie in their range."""
    label, width = report.model.label if report.model else None, 1.0
    if label is not None and found.metric != "auc":
        width = label.high - label.low
    return [each for each in found.calibration if NORMAL_95 * each.error < width / 2.0]


def _calibration(report: Report, found: Evaluation) -> Chart:
    groups = _telling(report, found)
    label = readable(report.model.label.name) if report.model else "label"
    half = [NORMAL_95 * group.error for group in groups]
    values = [g.predicted for g in groups]
    values += [g.observed + s * h for g, h in zip(groups, half, strict=True) for s in (-1.0, 1.0)]
    classes = found.metric == "auc"
    cut = ", cut at 0 and 1" if classes else ""  # noise carries some beyond what a share can be
    n_hidden = len(found.calibration) - len(groups)
    hidden = f" Noise hides {count(n_hidden, 'more group')}." if n_hidden else ""
    scale = Scale(0.0, 1.0) if classes else covering(values, zero=False)

    def pixel(value: float) -> float:
        return round(HEIGHT * (1.0 - scale.share(value)), 1)

    ticks = scale.ticks(5)
    return Chart(
        "calibration-plot",
        "Predictions beside what happened",
        f"Calibration in {len(groups)} groups of held-out people",
        HEIGHT,
        f"Held-out people in groups by prediction; bars are 95 % intervals{cut}. On the dashed"
        f" line predictions are neither too high nor too low.{hidden}",
        x_ticks=tuple((scale.percent(each), short(each)) for each in ticks),
        y_ticks=tuple((pixel(each), short(each)) for each in ticks),
        x_title="mean probability predicted" if classes else f"mean {label} predicted",
        y_title=f"share with {label}" if classes else f"mean {label} that was",
        lines=(_diagonal(pixel(scale.low), pixel(scale.high)),),
        points=tuple(
            Point(
                scale.percent(g.predicted),
                pixel(g.observed),
                pixel(g.observed - h),
                pixel(g.observed + h),
                f"predicted {short(g.predicted)}, was {short(g.observed)} ± {short(h, 2)}",
            )
            for g, h in zip(groups, half, strict=True)
        ),
        table=plain_table(
            "calibration",
            "Calibration",
            ("group", "predicted", "was", "± (95 %)"),
            [
                [number(n + 1), number(g.predicted), number(g.observed), number(h, 2)]
                for n, (g, h) in enumerate(zip(groups, half, strict=True))
            ],
        ),
    )


def _diagonal(low: float, high: float) -> Line:
    return Line(f"0,{low} 1000,{high}", "ink", "dashed", "perfect agreement")


def first_round(report: Report, quality: Quality) -> int:
    """Return the round that quality by round starts with: it ends where the path ends."""
    return report.path[-1].round - len(quality.by_round) + 1 if report.path else 1


def _simulated(report: Report, quality: Quality) -> list[Block]:
    """Show what only a simulation can know, in a box of its own."""
    metric = METRICS.get(quality.metric, quality.metric)
    others = quality.others
    lines = (
        ("this job", quality.ours, [each.ours for each in others]),
        (CENTRAL, quality.central, [each.central for each in others]),
        ("not private", quality.nonprivate, [each.nonprivate for each in others]),
    )
    rows = tuple(
        Row(
            (
                Cell(name),
                Cell(
                    strip=share_strip(
                        value,
                        None,
                        colour="ink" if name == "this job" else "spent",
                        label=f"{name}: {metric} {value:.3f}",
                    )
                ),
                Cell(f"{value:.3f}".replace("-", "−"), value),
                *(number(each) for each in more),
            )
        )
        for name, value, more in lines
        if value is not None
    )
    columns = (
        Column("model", number=False),
        Column("from 0 to 1", plot=True),
        Column(metric),
        *(Column(each.metric) for each in others),
    )
    said = (
        f"{_LONG.get(quality.metric, quality.metric)}, computed on {quality.n_rows:,d}"
        f" {_ROWS[quality.rows]}, from the plain data in one place, which a real study never has."
    )
    items = [quality.central_is, quality.nonprivate_is]
    if found := quality.probabilities:
        items.append(
            f"The mean probability is {found.mean_probability:.3f}, the base rate"
            f" {found.base_rate:.3f}; the log loss {found.log_loss:.3f}, and"
            f" {found.base_rate_log_loss:.3f} for the base rate alone."
        )
    note = Note(said, "Simulation only", items=tuple(item for item in items if item))
    table = Table("quality", "Beside references (simulation only)", columns, rows)
    return [note, table, *_by_round(report, quality, metric)]


def _by_round(report: Report, quality: Quality, metric: str) -> list[Block]:
    if len(quality.by_round) < 2:
        return []
    first = first_round(report, quality)
    rounds = list(range(first, first + len(quality.by_round)))
    ours = [max(MIN_DRAWN, value) for value in quality.by_round]
    caption = "" if quality.central is None else "Dashed: the two references."
    if min(quality.by_round) < MIN_DRAWN:
        caption += f" What is below {MIN_DRAWN:g} is not drawn."
    curves = [Curve(f"this job {quality.ours:.2f}", "ink", ours)]
    curves += [
        Curve(f"{name} {value:.2f}", "spent", [value] * len(rounds), "dashed")
        for name, value in (("pooled", quality.central), ("not private", quality.nonprivate))
        if value is not None
    ]
    least = min(0.0, *ours)
    top = max(1.0 if quality.metric in METRICS else 0.0, *(max(each.values) for each in curves))
    table = plain_table(
        "quality-by-round",
        f"{metric} after each round",
        ("round", metric),
        [[number(n), number(q)] for n, q in zip(rounds, quality.by_round, strict=True)],
    )
    chart = line_chart(
        "quality-plot",
        rounds,
        curves,
        title="By round (simulation only)",
        label=f"{metric} after each round beside two references",
        caption=caption,
        axes=("round", metric),
        scale=Scale(least, top),
        table=table,
    )
    return [chart]
