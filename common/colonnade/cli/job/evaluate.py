"""``colonnade job evaluate``: how good a job's model is, on people kept out of its fit."""

import argparse
import json

from colonnade.cli.job.connection import add_client_options, follow, open_client, print_results
from colonnade.client import Client
from colonnade.client.evaluate_builder import (
    EvaluateOptions,
    author_evaluation,
    evaluator_of,
    present_at,
)
from colonnade.client.plans import people_in_common
from colonnade.client.predict_builder import PredictOptions, author_prediction
from colonnade.core.errors import BadInput
from colonnade.methods.evaluation.metrics import expected_error
from colonnade.methods.holdout import rows_held_out
from colonnade.methods.job import Job
from colonnade.privacy.accounting import epsilon_of, format_upper_bound, rho_from_units

_NO_RUN = "0" * 64


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


def run(arguments: argparse.Namespace) -> int:
    """Score, then release."""
    options = EvaluateOptions(arguments.epsilon, arguments.purpose, arguments.to)
    with open_client(arguments) as client:
        details = client.show(arguments.job)
        name, trained = details.view.job_id, details.job
        if (model := client.report(name).model) is None or details.view.state != "finished":
            raise BadInput(f"job {name[:12]} has no finished model to evaluate")
        offers = client.parties()

        def author(run: str) -> Job:
            return author_evaluation(
                name, trained, run, model, options, offers=offers, timeout_s=arguments.timeout
            )

        planned = author(_NO_RUN)  # before anybody is scored
        people = people_in_common(offers, client.alignment)
        present = present_at(planned.evaluator, planned.population, people)
        told = {
            "party": evaluator_of(trained, options).party,
            "epsilon": epsilon_of(
                rho_from_units(planned.max_units(planned.evaluator)), trained.delta
            ),
            "people": int(rows_held_out(planned.population, trained.holdout).size),
            "expected_error": expected_error(planned.method, present),  # type: ignore[arg-type]
        }
        if arguments.dry_run:
            print(json.dumps(told) if arguments.json else _told(told))
            return 0
        if not arguments.json:
            print(_told(told))
        scored = arguments.run or _scored(client, name, trained, options, arguments)
        asked = client.submit(author(client.show(scored).view.job_id))
        code = follow(client, asked, as_json=arguments.json)
        if not arguments.json:
            print_results(client.report(name), as_json=False)
        return code


def _scored(
    client: Client,
    name: str,
    trained: Job,
    options: EvaluateOptions,
    arguments: argparse.Namespace,
) -> str:
    """Have the people who were kept out scored, and return the name of the prediction."""
    offers, evaluator = client.parties(), evaluator_of(trained, options).party
    n_rows = next(each.population for each in offers if each.party == evaluator)
    rows = rows_held_out(n_rows, trained.holdout)
    job = author_prediction(
        client.show(name).spec,
        client.releases(name),
        rows,
        PredictOptions(evaluator, options.purpose),
        offers=offers,
        timeout_s=arguments.timeout,
    )
    found = client.submit(job)
    client.wait(found)
    return found


def _told(told: dict[str, object]) -> str:
    epsilon = format_upper_bound(float(str(told["epsilon"])))
    return (
        f"{told['people']} people were kept out; {told['party']} releases for epsilon "
        f"{epsilon}; expected standard error about {told['expected_error']}"
    )
