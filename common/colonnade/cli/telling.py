"""A few plain lines on each step of a study: what came of it, what it cost, what left.

`colonnade demo` and the simulation in containers print these; all is read from public documents.
"""

from collections.abc import Mapping
from typing import Any

from colonnade.cli.align.show import summary_lines
from colonnade.privacy.accounting import epsilon_of, format_upper_bound
from colonnade.report.text import size


def align_lines(report: dict[str, Any]) -> list[str]:
    """Describe a finished alignment from its report."""
    left = size(report["uplink"]["payload_bytes"])
    counts = report["alignment"]["overlap"] or ()
    return [
        *(line.strip() for line in summary_lines(report)[: 1 + len(counts)]),
        f"what left: {left} of blinded points, predicted to the byte",
        "cost: epsilon 1 of membership at each party, beside the caps; this holds if the",
        "parties follow the protocol",
    ]


def plan_lines(job: str, plan: Mapping[str, Any], epsilon: float, approver: str) -> list[str]:
    """Describe a job that was just submitted, with an evaluation, and waits for ``approver``."""
    told = plan["evaluation"]
    error = f"expected standard error {told['expected_error']:.2g}"
    return [
        f"method {plan['method']}, {plan['rounds']} rounds, planned from public numbers alone",
        f"at most epsilon {epsilon:g} for one person at all three together, whatever all others do",
        f"{format_upper_bound(told['epsilon'])} of it is for an evaluation; {error}",
        f"job {job[:12]} waits for the {approver}'s officer; nothing is set aside there",
    ]


def fit_lines(report: Mapping[str, Any], label: str) -> list[str]:
    """Describe a finished job: what was spent, what left, what matters."""
    uplink, joint = report["uplink"], report["privacy"]["joint"]
    spent = format_upper_bound(joint["spent"]["epsilon"])
    # For one standard deviation, as releases tell it; none is told of a level nobody has.
    effects = [each for each in report["per_deviation"]["features"] if each["deviation"]]
    largest = sorted(effects, key=lambda each: -abs(each["coef"]))[:4]
    names = ", ".join(f"{each['name']} ({each['party']})" for each in largest if each["coef"])
    return [
        f"spent: epsilon {spent} for one person at all three",
        f"what left: {size(uplink['payload_bytes'])} of noisy integers, as predicted",
        f"largest effects on {label}: {names or 'nothing that stands out of the noise'}",
    ]


def evaluation_lines(report: Mapping[str, Any], party: str) -> list[str]:
    """Describe the evaluation in a job's report, which ``party`` released, and the cost of both."""
    told, privacy = report["evaluation"], report["privacy"]
    joint = privacy["joint"]["spent"]["rho"] + told["spent"]["rho"]
    both = format_upper_bound(epsilon_of(joint, privacy["delta"]))
    paid = format_upper_bound(told["epsilon"])
    return [
        f"{told['metric'].upper()} {told['value']:.3f}, standard error {told['error']:.3f}",
        f"a noisy histogram left the {party}; epsilon {paid} was set aside",
        f"with the fit: epsilon {both} for one person at all three (rho adds up, epsilon does not)",
    ]


def score_lines(count: int, party: str) -> list[str]:
    """Describe a prediction that ``party`` received."""
    return [
        f"the {party} asked for {count} of its patients and alone got the scores",
        "each organization masked its own part; no differential privacy, by explicit grant",
    ]


def the_only_other(report: Mapping[str, Any], receiver: str) -> str | None:
    """Return the one party besides the receiver whose columns a model uses; None if not one.

    A score would show its part, so every party refuses to score people by such a model.
    """
    used = {each["party"] for each in report["model"]["features"] if each["coef_scaled"]}
    others = used - {receiver}
    return next(iter(others)) if len(others) == 1 else None


def unscored_lines(alone: str, receiver: str) -> list[str]:
    """Say why nobody is scored by a model of `the_only_other`."""
    return [
        f"the model uses columns of the {alone} alone besides the {receiver}'s, so that a",
        f"score would show the {alone}'s part: every party refuses; try another seed",
    ]
