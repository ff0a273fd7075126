"""Options that `simulate`, `plan` and `job submit` share."""

import argparse
from dataclasses import fields

from colonnade.client import JobOptions


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a job's plan, which `options_of` reads."""
    plan = parser.add_argument_group("plan (what is not given is recommended)")
    _add_budget_and_method(plan)
    _add_sizes(plan)
    _add_label(plan)
    _add_sampling(plan)


def _add_budget_and_method(plan: argparse._ArgumentGroup) -> None:
    plan.add_argument("--epsilon", type=float, default=1.0, help="default 1")
    plan.add_argument("--delta", type=float, help="default min(1e-6, 1/(10 rows))")
    plan.add_argument(
        "--scope",
        choices=("joint", "party"),
        default="joint",
        help="whether epsilon is for a person at all parties together or at each",
    )
    plan.add_argument(
        "--correlation",
        type=float,
        default=None,
        help="between synthetic columns, or expected by a frank-wolfe plan; default 0.2",
    )
    plan.add_argument(
        "--method",
        choices=("frank-wolfe", "moments"),
        help="the published algorithm, or local moments with shared directions; default: whichever "
        "the plan expects more of",
    )
    plan.add_argument(
        "--exchange",
        choices=("sketched", "sealed"),
        help="where one party has the label: noisy sketches, private whatever peers do, or "
        "(experimental) products under encryption, private if peers follow the protocol, which "
        "every policy must grant; default: sealed where all grant it, else sketched",
    )


def _add_sizes(plan: argparse._ArgumentGroup) -> None:
    plan.add_argument("--buckets", type=int, help="sealed: buckets that rows are summed into")
    plan.add_argument("--sketch-dim", type=int, help="numbers in a sketch over rows")
    plan.add_argument(
        "--radius",
        type=float,
        help="L1 radius, in label deviations for each of a feature: of each party with "
        "frank-wolfe, of the whole model with moments",
    )
    plan.add_argument("--directions", type=int, help="moments: directions each party shares")
    plan.add_argument("--keep-features", type=int, help="features a wide party keeps")
    plan.add_argument("--rounds", type=int, help="frank-wolfe: steps")
    plan.add_argument("--shares", type=int, help="frank-wolfe: features each party may share")


def _add_label(plan: argparse._ArgumentGroup) -> None:
    plan.add_argument(
        "--label-owner",
        metavar="PARTY",
        help="only this party's label is used; default: everybody's, where every party has it",
    )
    plan.add_argument(
        "--evaluate",
        type=float,
        metavar="EPSILON",
        help="leave this of epsilon for `job evaluate`: the model is then measured on people who "
        "are kept out of the fit",
    )
    plan.add_argument(
        "--keep-out",
        type=float,
        metavar="PART",
        help="part of the people to keep out of the fit; default 0.2 with --evaluate, else 0",
    )
    plan.add_argument(
        "--loss",
        choices=("squared", "logistic"),
        default="squared",
        help="squared (default) for a number, logistic for two classes",
    )


def _add_sampling(plan: argparse._ArgumentGroup) -> None:
    plan.add_argument(
        "--sampling",
        choices=("all", "serial", "nice"),
        default="all",
        help="frank-wolfe: parties in a round",
    )
    plan.add_argument("--parties-per-round", type=int, help="frank-wolfe: for nice sampling")
    plan.add_argument(
        "--features-per-round", type=int, default=0, help="frank-wolfe: candidates; default all"
    )


def options_of(arguments: argparse.Namespace) -> JobOptions:
    """Return what was asked for."""
    return JobOptions(**{each.name: getattr(arguments, each.name) for each in fields(JobOptions)})
