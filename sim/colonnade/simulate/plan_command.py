"""``colonnade plan``: what a job would do, cost and reach, before any data is read."""

import argparse
import json
from collections.abc import Callable
from typing import Any

from colonnade.cli.options.planning import add_plan_options, options_of
from colonnade.cli.text import as_text
from colonnade.client.description import evaluation_terms, expected_idle
from colonnade.client.options import JobOptions
from colonnade.client.planning import budget_of, delta_of, evaluation_units, holdout_of, plan_of
from colonnade.methods.base import MethodPlan
from colonnade.methods.bounds_budget import BoundsBudget
from colonnade.methods.holdout import PARTS
from colonnade.methods.problem import Loss, Problem
from colonnade.methods.sealed.claims import PROMISE
from colonnade.methods.sealed.plan import recommend as sealed_plan
from colonnade.methods.sealed.ring import available
from colonnade.privacy.accounting import epsilon_of, rho_from_units
from colonnade.simulate.data.story import even_split, feature_names, party_names
from colonnade.simulate.data_options import (
    add_bounds_option,
    add_data_options,
    bounds_share,
    check_data_options,
    check_parties,
    check_seed,
    owner_of,
)
from colonnade.simulate.evaluation.expected import expected_accuracy


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = (
        "Recommend a job for this many people, parties and features: rounds, shares, sketch size "
        "and split of the budget, with frank-wolfe the noise, the exact bytes, and the accuracy "
        "to expect, from synthetic data of that shape."
    )
    parser.add_argument("--quick", action="store_true", help="do not simulate the accuracy")
    parser.add_argument("--parties", type=int, default=3, help="organizations; default 3")
    add_data_options(parser)
    add_plan_options(parser)
    add_bounds_option(parser, "default 0; the rest is what the job is planned with")


def run(arguments: argparse.Namespace) -> int:
    """Print the plan."""
    count, n_rows = arguments.parties, arguments.rows
    check_parties(count, most=256)
    check_seed(arguments.seed)
    check_data_options(arguments, parties=count, max_rows=10**9, max_features=10**6)
    names = party_names(count)
    splits = even_split(arguments.features, count)
    features = {name: feature_names(name, size) for name, size in zip(names, splits, strict=True)}
    owner = owner_of(arguments, names)
    options = options_of(arguments)
    holdout = holdout_of(options)
    n_out = n_rows * holdout // PARTS
    n_rows -= n_out
    units, delta = budget_of(options, n_rows=n_rows, n_parties=count), delta_of(options, n_rows)
    labels = {name: options.loss == "squared" and owner in (None, name) for name in names}
    columns = {name: len(features[name]) + labels[name] for name in names}
    share = bounds_share(arguments, usual=0.0)
    bounds = BoundsBudget.of(columns, n_rows=n_rows, units=units, share=share)
    rest = units - bounds.set_aside
    plan = plan_of(options, features, n_rows=n_rows, units=rest, owner=owner)
    spec = plan.spec
    most = {name: spec.max_units(name) for name in names}
    prices = {name: bounds.prices.get(name, 0) for name in names}

    def amounts(job: int, paid: int) -> dict[str, Any]:
        """Return the total, and what of it is for bounds and for the job."""

        def amount(units: int) -> dict[str, float]:
            rho = rho_from_units(units)
            return {"rho": rho, "epsilon": epsilon_of(rho, delta)}

        return amount(job + paid) | {"bounds": amount(paid), "job": amount(job)}

    result: dict[str, Any] = {
        "method": spec.kind,
        "rounds": spec.rounds,
        "sketch_dim": spec.sketch_dim,
        "labels": spec.labels.value,
        "loss": spec.loss.value,
        "privacy": {
            "delta": delta,
            "bounds_note": bounds.note,
            "joint": amounts(sum(most.values()), sum(prices.values())),
            "parties": {name: amounts(most[name], prices[name]) for name in names},
        },
        "expected_idle": expected_idle(spec),
        **_evaluation(options, owner or names[0], n_rows, n_out),
        **(plan.summary() | {"rounds": spec.rounds}),  # the opening is none
    }

    def expected(plan: MethodPlan[Any]) -> dict[str, object]:
        return expected_accuracy(
            plan,
            informative=min(arguments.informative, arguments.features),
            noise=arguments.label_noise,
            seed=arguments.seed,
        )

    if not arguments.quick:
        result["expected"] = expected(plan)
    if plan.problem.sketched and options.exchange is None and options.method is None:
        result["with_sealed"] = _with_sealed(plan.problem, None if arguments.quick else expected)
    print(json.dumps(result) if arguments.json else as_text(result))
    return 0


def _evaluation(options: JobOptions, party: str, n_rows: int, n_out: int) -> dict[str, Any]:
    """Describe what the evaluation costs besides, and what error to expect of it."""
    if not (units := evaluation_units(options, n_rows)):
        return {}
    delta, loss = delta_of(options, n_rows), Loss(options.loss)
    return {"evaluation": evaluation_terms(party, units, people=n_out, loss=loss, delta=delta)}


def _with_sealed(
    problem: Problem, expected: Callable[[MethodPlan[Any]], dict[str, object]] | None
) -> dict[str, Any]:
    """Describe what products under encryption would buy, and what they would rest on."""
    found: dict[str, Any] = {
        "experimental": True,
        "needs": "--exchange sealed, the extra colonnade[sealed] at every party, and a policy of "
        "each that names all others and pins their ledger keys",
        "promise": PROMISE,
    }
    try:
        plan = sealed_plan(problem)
    except ValueError as error:
        return found | {"plan": f"none: {error}"}
    sizes = {party: sum(kinds.values()) for party, kinds in plan.max_bytes().items()}
    found["max_payload_bytes"] = sizes
    if expected is not None and available():
        found["expected"] = expected(plan)
    return found
