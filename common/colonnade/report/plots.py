"""All plots of a report."""

from colonnade.report.axes import party_colours
from colonnade.report.client_sections import draw_clients
from colonnade.report.cost_plots import draw_rounds, draw_spend, draw_traffic, draw_uplink
from colonnade.report.markup import Markup
from colonnade.report.model_plots import draw_coef, draw_path, draw_quality
from colonnade.report.moment_plots import draw_correlations, draw_intervals, draw_l1_path
from colonnade.report.schema import Report


def draw_plots(report: Report) -> dict[str, Markup] | None:
    """Return the plots that the report has numbers for; None if Matplotlib is not installed."""
    colours = party_colours(report)
    try:
        plots = {
            "spend": draw_spend(report["privacy"], colours),
            "rounds": draw_rounds(report["privacy"], colours),
            "uplink": draw_uplink(report["uplink"]),
            "traffic": draw_traffic(report["uplink"]),
            "coef": draw_coef(report, colours),
            "path": draw_path(report, colours),
            "quality": draw_quality(report),
            "clients": draw_clients(report),
            "l1_path": draw_l1_path(report, colours),
            "intervals": draw_intervals(report, colours),
            "correlations": draw_correlations(report, colours),
        }
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        return None
    return {key: plot for key, plot in plots.items() if plot is not None}
