"""``colonnade job evaluate``: a job's model measured on held-out people."""

import argparse
import json

from colonnade.cli.job.confirm import confirm
from colonnade.cli.job.connection import add_client_options, follow, open_client, print_results
from colonnade.client import EvaluateOptions, EvaluationPlan
from colonnade.privacy.accounting import format_upper_bound


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Have the people whom a job kept out of its fit scored for the party that holds the label "
        "(a prediction, which every party's policy must grant), which then releases a noisy "
        "histogram through its ledger: AUC or R2, log-loss and calibration follow from it. Its "
        'policy must allow the kind "evaluation".'
    )
    add_client_options(parser, job=True)
    parser.add_argument(
        "--epsilon", type=float, help="price; default: what the job set aside for it, or else 0.1"
    )
    parser.add_argument(
        "--purpose", default="evaluation", help="as the grants say it; default: evaluation"
    )
    parser.add_argument("--to", metavar="PARTY", help="a holder of the label; default: the first")
    parser.add_argument("--run", help="a finished prediction of these people, instead of a new one")
    parser.add_argument("--timeout", type=int, default=3600, help="seconds a party may stay away")
    parser.add_argument(
        "--dry-run", action="store_true", help="print price and expected error, submit nothing"
    )
    parser.add_argument(
        "--yes", action="store_true", help="spend in spite of warnings, without asking"
    )
    parser.add_argument(
        "--again", action="store_true", help="spend again on a model that was evaluated before"
    )


def run(arguments: argparse.Namespace) -> int:
    """Score, then release."""
    options = EvaluateOptions(arguments.epsilon, arguments.purpose, arguments.to)
    with open_client(arguments) as client:
        plan = client.plan_evaluation(arguments.job, options, timeout_s=arguments.timeout)
        if arguments.dry_run or not arguments.json:
            print(json.dumps(plan.description) if arguments.json else _in_words(plan))
        if arguments.dry_run:
            return 0
        agreed = arguments.epsilon is None and plan.training.job.evaluation_units  # at submission
        if not agreed and (plan.earlier is None or arguments.again):  # else it is refused
            confirm(plan.warnings, yes=arguments.yes)
        asked = client.evaluate(plan, run=arguments.run, again=arguments.again)
        code = follow(client, asked, as_json=arguments.json)
        if not arguments.json:
            print_results(client.report(plan.training.view.job_id), as_json=False)
        return code


def _in_words(plan: EvaluationPlan) -> str:
    epsilon = format_upper_bound(plan.epsilon)
    return (
        f"about {plan.people} people were kept out; {plan.party} releases for epsilon "
        f"{epsilon}; expected standard error about {plan.expected_error}"
    )
