"""What only the report of a fit at one site shows: its claim, and its way to the model."""

import math

from colonnade.report.parts import Answer, Block, Cell, Fact, Facts, Grid, Section
from colonnade.report.plots import MAX_NAMED, Curve, line_chart
from colonnade.report.schema import Report
from colonnade.report.schema_fit import Fit, FitRelease, Trail
from colonnade.report.text import at_most, epsilon_up, short
from colonnade.report.views.cells import number, plain_table
from colonnade.report.views.effects import effects_of
from colonnade.report.views.glossary import kind_words
from colonnade.report.views.privacy import explain, promise


def fit_answers(report: Report, fit: Fit) -> tuple[Answer, ...]:
    """Answer how good, what matters, what it cost and what left."""
    effects = effects_of(report)
    used = sum(bool(each.feature.coef_scaled) for each in effects)
    privacy = fit.privacy
    figure, small = (epsilon_up(privacy.epsilon), "at most") if privacy.private else ("No ε", "")
    cost = f"for {privacy.neighbours}, at δ = {short(privacy.delta, 3)}."
    if not privacy.private:
        cost = f"The same fit with exact noise would cost {epsilon_up(privacy.epsilon)}."
    return (
        Answer(
            "How good is it?",
            "Not measured",
            "",
            "Accuracy depends on the rows and would have to be paid for.",
            "path",
            "How it came about",
        ),
        Answer(
            "What matters?",
            f"{used:,d} of {len(effects):,d}",
            "",
            f"columns have a coefficient, from {report.n_rows:,d} rows.",
            "model",
            "The effects",
            report.n_rows,
        ),
        Answer(
            "What did it cost in privacy?",
            figure,
            small,
            cost,
            "privacy",
            "What ε means",
            privacy.epsilon,
        ),
        Answer(
            "What left?",
            "Nothing yet",
            "",
            "The model and this page are made of releases: they are what may be shared.",
            "details",
            "The files",
        ),
    )


def fit_privacy_section(report: Report, fit: Fit) -> Section:
    """Describe what the fit promises and what was released for it."""
    privacy = fit.privacy
    facts = [
        Fact("Neighbours", privacy.neighbours),
        Fact("ρ", "none: secret batches")
        if privacy.rho is None
        else Fact("ρ", short(privacy.rho), privacy.rho),
        Fact("ρ that a ledger charges for it", short(privacy.charged_rho), privacy.charged_rho),
        Fact("δ", short(privacy.delta, 3), privacy.delta),
        *_sampling(fit),
    ]
    if (ledger := fit.ledger) is not None:
        facts += [
            Fact("Ledger", ledger.ledger_id, mono=True),
            Fact("Charged now, ρ", short(ledger.charged_now_rho), ledger.charged_now_rho),
            Fact("Left under its cap, ρ", short(ledger.left_rho), ledger.left_rho),
        ]
    lines = []
    for each in privacy.releases:
        words, what = kind_words(each.kind)
        lines.append(
            [
                Cell(words, note=what),
                Cell(each.mechanism.replace("_", " ")),
                number(_noise(each)),
                number(each.count),
                number(each.touches),
            ]
        )
    head = ("kind", "mechanism", "noise / sensitivity", "releases", "that one row affects")
    table = plain_table("releases", "What was released", head, lines, texts=2, layout="stack")
    lead = explain(privacy.epsilon, privacy.delta)
    blocks = (promise(report, privacy.statement), Facts(tuple(facts), "The claim"), table)
    return Section("privacy", "What it cost in privacy", "Privacy", (lead,), blocks)


def _sampling(fit: Fit) -> list[Fact]:
    """Return what there is to say about secret batches: nothing if all rows are in all."""
    privacy = fit.privacy
    if privacy.sampling_rate == 1.0:
        return []
    rate = privacy.sampling_rate
    facts = [Fact("a row is in a batch with probability", short(rate), rate)]
    if (amplified := privacy.amplified_epsilon) is not None:
        what = "ε if nobody learns who was in which batch; the charge takes no credit for that"
        facts.append(Fact(what, at_most(amplified), amplified))
    return facts


def _noise(release: FitRelease) -> float | None:
    """Return the scale of the noise over what one row can change."""
    if release.sigma2 is not None and release.l2_sensitivity2:
        return float(math.sqrt(release.sigma2 / release.l2_sensitivity2))
    moved = release.sensitivity or release.l1_sensitivity
    if release.scale is not None and moved:
        return float(release.scale / moved)
    return None


def distances(path: Trail) -> list[float]:
    """Return how far the coefficients after each step are from the last, relative to its size."""
    last = path.coef[-1]
    size = math.hypot(*last)
    return [math.dist(coef, last) / size if size else 0.0 for coef in path.coef]


def path_section(path: Trail) -> Section | None:
    """Show how the model came about, from the releases alone."""
    charts: list[Block] = []
    if len(path.steps) > 1 and any(path.coef[-1]):
        charts.append(_path_chart(path))
    points = [(step, far) for step, far in zip(path.steps, distances(path), strict=True) if far]
    if len(points) > 1:
        steps, far = zip(*points, strict=True)
        charts.append(
            line_chart(
                "distance-plot",
                steps,
                [Curve("", "ink", far)],
                title="Distance to the final model",
                label="Distance to the final model by step",
                caption="Relative to its size, without the last step, where it is zero. Steep to"
                " the end: the model was still on its way, or each step's noise is large.",
                axes=("step", "distance"),
                logarithmic=True,
                table=plain_table(
                    "distance",
                    "Distance to the final model",
                    ("step", "distance"),
                    [[number(step), number(value)] for step, value in points],
                ),
            )
        )
    if not charts:
        return None
    lead = (
        "Made of the releases alone. The objective itself is not shown: it depends on the rows and"
        " would have to be paid for."
    )
    return Section("path", "How it came about", "Path", (lead,), (Grid(tuple(charts)),))


def _path_chart(path: Trail) -> Block:
    curves = [
        Curve(
            name,
            "ink",
            [coef[place] for coef in path.coef],
            "" if place < MAX_NAMED and path.coef[-1][place] else "thin",
        )
        for place, name in enumerate(path.features)
    ]
    return line_chart(
        "path-plot",
        path.steps,
        curves,
        title="Coefficients by step",
        label="Coefficients after each step",
        caption="On scaled values. Named: the largest at the end. Thin: others.",
        axes=("step", "coefficient, scaled"),
        table=plain_table(
            "path-table",
            "Coefficients after each step, scaled",
            ("step", *path.features),
            [
                [number(step), *(number(value) for value in coef)]
                for step, coef in zip(path.steps, path.coef, strict=True)
            ],
        ),
    )
