"""Details last: the job, its parameters in words, and the glossary."""

from collections.abc import Mapping

from colonnade.report.parts import Fact, Facts, Fold, Section
from colonnade.report.schema import Report, Setting
from colonnade.report.schema_fit import FitPenalty
from colonnade.report.text import seconds, short
from colonnade.report.views.glossary import glossary

_LABELS = {
    "shared": "shared: every party holds the label",
    "sketched": "sketched: one party holds the label and shares a noisy sketch of it",
    "sealed": "sealed: one party holds the label; products with it are computed under encryption",
}
# Of a job over clients: what a reader needs, in words; report.json has all by their short names.
_OF_CLIENTS = {
    "variant": "what clients compute",
    "aggregate": "what leaves a host",
    "rounds": "rounds planned",
    "sampled": "clients drawn in a round",
    "sampling": "how they are drawn",
    "minimum": "least answers of a round",
    "round_timeout_s": "a drawing closes after, seconds",
    "participations": "most answers of one client",
    "gamma": "gamma: length of a client's step",
    "lipschitz": "L: a client's answer is clipped to gamma times L",
    "last_radius": "radius of the last displacements, over the first",
    "intercept_rounds": "last rounds, which ask for the intercept",
    "client_rows": "rows that clients were expected to have",
    "step": "lambda: how far the duals follow an answer",
    "dual_weight": "weight of a client's dual in what it is sent (1: the published algorithm)",
    "noise": "standard deviation of an answer's noise, in each coefficient",
    "regulariser": "regulariser",
    "l1": "strength of the l1 penalty",
    "l2": "strength of the l2 penalty",
    "box": "coefficients lie within plus and minus",
}
_OPTIONAL = ("l1", "l2", "box")
_DRAWN = {
    "fixed": "so many, without replacement",
    "poisson": "a coin for each; the number drawn is a mean",
}
_SIMULATED = {
    "rows_per_client": "rows of each client",
    "features": "columns",
    "hosts": "host processes",
    "partition": "rows dealt to clients",
    "drop_out": "chance that a client is away",
    "seed": "seed of the synthetic rows",
}
SOLVERS = {
    "gram": "a noisy Gram matrix",
    "cd": "coordinate descent",
    "gcd": "greedy coordinate descent",
    "sgd": "stochastic gradient descent",
    "frank_wolfe": "Frank-Wolfe",
    "admm": "ADMM over the rows",
    "dual": "dual coordinate descent",
}


def details_section(report: Report) -> Section:
    """List what was asked for, and explain the terms."""
    facts = _fit_facts(report) if report.fit else _job_facts(report)
    blocks = (
        Facts(facts),
        Fold("All parameters", (Facts(_parameters(report)),)),
        Fold("Glossary", (Facts(glossary(report)),)),
    )
    return Section("details", "Details", "Details", (), blocks)


def _labels(report: Report) -> str:
    held = "sealed" if report.sealed else report.labels
    return _LABELS.get(held, held)


def _job_facts(report: Report) -> tuple[Fact, ...]:
    clients, privacy = report.over_clients, report.privacy
    exact = "exact and secret" if report.private else "simulated: not private"
    return (
        Fact("Job", report.job_id, mono=True),
        Fact("Name", report.name),
        Fact("Method", "federated ADMM over clients" if report.method == "admm" else report.method),
        Fact("Loss", report.loss),
        Fact("Labels", "each client's own" if clients else _labels(report)),
        Fact("Submitted", report.submitted_at),
        Fact("Ended", report.ended_at or "–"),
        Fact("Duration", seconds(report.seconds), report.seconds),
        Fact("Noise", exact),
        *([Fact("δ", short(privacy.delta, 3), privacy.delta)] if privacy else []),
        Fact("Files", "The same numbers for programs: report.json and model.json"),
    )


def _fit_facts(report: Report) -> tuple[Fact, ...]:
    exact = "exact and secret" if report.private else "not private"
    return (
        Fact("Fit", report.job_id, mono=True),
        Fact("Name", report.name),
        Fact("Loss", report.loss),
        Fact("Noise", exact),
        Fact("Files", "The same numbers for programs: report.json and model.json"),
    )


def _parameters(report: Report) -> tuple[Fact, ...]:
    if (fit := report.fit) is not None:
        solver = SOLVERS.get(fit.privacy.solver, fit.privacy.solver)
        return (
            Fact("solver", solver),
            *(_fact(f"its {name.replace('_', ' ')}", v) for name, v in fit.settings.items()),
            *_penalty(fit.penalty),
            _fact("intercept", fit.intercept),
        )
    facts = _client_facts(report.parameters) if report.over_clients else _facts(report.parameters)
    made = [
        _fact(f"simulated: {_SIMULATED.get(name, name)}", value)
        for name, value in report.simulation.items()
    ]
    return (*facts, *made)


def _penalty(penalty: FitPenalty) -> list[Fact]:
    if penalty.name:  # a registered one
        return [_fact(f"{penalty.name.replace('_', ' ')} penalty", penalty.strength)]
    box = "none" if penalty.box is None else penalty.box
    strengths = (("l1 penalty", penalty.l1), ("l2 penalty", penalty.l2), ("box", box))
    return [_fact(name, value) for name, value in strengths]


def _client_facts(parameters: Mapping[str, Setting]) -> list[Fact]:
    """Return the settings of a job over clients; of its penalties those that are there."""
    shown = {**parameters, "sampling": _DRAWN.get(str(parameters.get("sampling")), "")}
    return [
        _fact(words, shown[name])
        for name, words in _OF_CLIENTS.items()
        if name in shown and (shown[name] or name not in _OPTIONAL)
    ]


def _facts(values: Mapping[str, Setting]) -> list[Fact]:
    return [_fact(name, value) for name, value in values.items()]


def _fact(name: str, value: object) -> Fact:
    if value is None:
        return Fact(name, "by default")
    if isinstance(value, bool):
        return Fact(name, "yes" if value else "no")
    if isinstance(value, int | float):
        return Fact(name, short(value).replace("-", "−"), value)
    return Fact(name, value if isinstance(value, str) else "given")
