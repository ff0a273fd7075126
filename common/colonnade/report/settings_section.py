"""The section of a job's settings, in words."""

from collections.abc import Mapping

from colonnade.report.markup import Markup, name_of, number, table, tag
from colonnade.report.schema import Report, is_over_clients

_LABELS = {
    "shared": "shared: every party holds the label",
    "sketched": "sketched: one party holds the label and shares a noisy sketch of it",
}
# Of a job over clients: what a reader needs, in words; `report.json` has all by their short names.
_OF_CLIENTS = {
    "rounds": "rounds planned",
    "sampled": "clients drawn in a round",
    "minimum": "least answers of a round",
    "round_timeout_s": "a drawing closes after, seconds",
    "participations": "most answers of one client",
    "gamma": "gamma: length of a client's step",
    "lipschitz": "L: a client's answer is clipped to gamma times L",
    "step": "lambda: how far the duals follow an answer",
    "dual_weight": "weight of a client's dual in what it is sent (1: the published algorithm)",
    "noise": "standard deviation of an answer's noise, in each coefficient",
}
_PENALTIES = {"l1": "strength of the l1 penalty", "l2": "strength of the l2 penalty"}
_SIMULATED = {
    "rows_per_client": "rows of each client",
    "features": "features",
    "hosts": "host processes",
    "partition": "rows dealt to clients",
    "drop_out": "chance that a client is away",
    "seed": "seed of the made-up rows",
}


def settings_section(report: Report) -> Markup:
    """List the job's settings."""
    over_clients = is_over_clients(report)
    exact = "noise is exact and secret" if report["private"] else "noise is simulated: not private"
    rows: list[tuple[str, str]] = [
        ("method", "federated ADMM over clients" if over_clients else report["method"]),
        ("loss", report["loss"]),
        ("labels", "each client's own" if over_clients else _LABELS[report["labels"]]),
        ("submitted", report["submitted_at"]),
        ("ended", report["ended_at"] or "–"),
        ("duration, seconds", number(report["seconds"])),
        ("privacy", exact),
    ]
    parameters = report["parameters"]
    rows += _client_rows(parameters) if over_clients else _rows(parameters, {})
    if "simulation" in report:
        made = report["simulation"]
        rows += [(f"simulated: {name}", value) for name, value in _rows(made, _SIMULATED)]
    return tag("section", tag("h2", "The job"), table(("setting", "value"), rows, texts=2))


def _client_rows(parameters: Mapping[str, float | str]) -> list[tuple[str, str]]:
    """Return the settings of a job over clients; of its penalties those that are there."""
    drawn = {
        "fixed": "so many, without replacement",
        "poisson": "a coin for each; the number drawn is a mean",
    }
    rows = _rows({name: parameters[name] for name in _OF_CLIENTS}, _OF_CLIENTS)
    rows.insert(2, ("how they are drawn", drawn[str(parameters["sampling"])]))
    rows.append(("regulariser", name_of(str(parameters["regulariser"]))))
    held = {name: parameters[name] for name in _PENALTIES if parameters[name]}
    rows += _rows(held, _PENALTIES)
    if parameters["box"]:
        rows.append(("coefficients lie within plus and minus", number(float(parameters["box"]))))
    return rows


def _rows(values: Mapping[str, float | str], words: Mapping[str, str]) -> list[tuple[str, str]]:
    return [
        (
            words.get(name, name_of(name)),
            name_of(value) if isinstance(value, str) else number(value),
        )
        for name, value in values.items()
    ]
