"""Options that `simulate`, `plan` and `job submit` share."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from colonnade.client.builder import JobOptions


def add_plan_options(parser: argparse.ArgumentParser, *, data: bool) -> None:
    """Add the options of a job's plan, and with ``data`` those of made-up data."""
    if data:
        made = parser.add_argument_group("data")
        made.add_argument("--parties", type=int, default=3, help="organizations; default 3")
        made.add_argument("--rows", type=int, default=100_000, help="people; default 100000")
        made.add_argument("--features", type=int, default=30, help="columns in all; default 30")
        made.add_argument("--informative", type=int, default=6, help="that matter; default 6")
        made.add_argument("--noise", type=float, default=0.5, help="label noise to signal; 0.5")
        made.add_argument("--seed", type=int, default=0, help="of data, never of noise")
    plan = parser.add_argument_group("plan (what is not given is recommended)")
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
        help="between columns, made up, or expected by a frank-wolfe plan; default 0.2",
    )
    plan.add_argument(
        "--method",
        choices=("frank-wolfe", "moments"),
        help="the published algorithm, or local moments with shared directions; default: whichever "
        "the plan expects more of",
    )
    plan.add_argument("--sketch-dim", type=int)
    plan.add_argument(
        "--radius",
        type=float,
        help="L1 radius, in label deviations for each of a feature: of each party with "
        "frank-wolfe, of the whole model with moments",
    )
    plan.add_argument("--directions", type=int, help="moments: directions each party shares")
    plan.add_argument("--keep-features", type=int, help="moments: features a wide party keeps")
    plan.add_argument("--rounds", type=int, help="frank-wolfe: steps")
    plan.add_argument("--shares", type=int, help="frank-wolfe: features each party may share")
    plan.add_argument("--labels", choices=("shared", "sketched"))
    plan.add_argument("--label-owner", metavar="PARTY", help="who holds a sketched label")
    plan.add_argument("--loss", choices=("squared", "logistic"), default="squared")
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


def add_bounds_option(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the part of the budget that is for bounds, which `bounds_share` reads."""
    parser.add_argument(
        "--bounds-share",
        type=float,
        metavar="PART",
        help=f"part of the budget to buy tighter bounds with; {default}",
    )


def bounds_share(arguments: argparse.Namespace, *, usual: float | None) -> float | None:
    """Return the part of the budget that is for bounds; None leaves it to the rule."""
    from colonnade.core.errors import BadInput

    share: float | None = arguments.bounds_share
    if share is None:
        return usual
    if not 0.0 <= share < 1.0:
        raise BadInput("--bounds-share must be at least 0 and below 1")
    return share


def check_data_options(
    arguments: argparse.Namespace,
    *,
    max_parties: int,
    max_rows: int,
    max_features: int,
    made_up: bool = True,
) -> None:
    """Refuse numbers of parties, and of made-up data, that give no table."""
    from colonnade.core.errors import BadInput

    parties, correlation = arguments.parties, arguments.correlation
    checks = [
        (1 <= parties <= max_parties, f"--parties must lie between 1 and {max_parties}"),
        (arguments.seed >= 0, "--seed cannot be negative"),
    ]
    if made_up:
        checks += [
            (10 <= arguments.rows <= max_rows, f"--rows must lie between 10 and {max_rows}"),
            (
                parties <= arguments.features <= max_features,
                f"--features needs at least one for each party, and at most {max_features}",
            ),
            (arguments.informative >= 1, "--informative must be at least 1"),
            (0.0 < arguments.noise <= 1000.0, "--noise must be above 0 and at most 1000"),
            (
                correlation is None or 0.0 <= correlation < 1.0,
                "--correlation must be at least 0 and below 1",
            ),
        ]
    for fine, text in checks:
        if not fine:
            raise BadInput(text)


def owner_of(arguments: argparse.Namespace, parties: Sequence[str]) -> str | None:
    """Return who alone holds the label, or None if every party does."""
    from colonnade.core.errors import BadInput

    owner: str | None = arguments.label_owner
    if arguments.labels != "sketched":
        if owner is not None:
            raise BadInput("--label-owner needs --labels sketched")
        return None
    if owner not in (None, *parties):
        raise BadInput(f"--label-owner must be one of {', '.join(parties)}")
    return owner or parties[0]


def wishes_of(arguments: argparse.Namespace) -> "JobOptions":
    """Return what was asked for."""
    from dataclasses import fields

    from colonnade.client.builder import JobOptions

    return JobOptions(**{each.name: getattr(arguments, each.name) for each in fields(JobOptions)})
