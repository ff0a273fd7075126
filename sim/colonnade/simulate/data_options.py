"""Options of synthetic data and of bounds, which `simulate` and `plan` share."""

import argparse
from collections.abc import Sequence

from colonnade.core.arguments import BadArgument


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of synthetic data."""
    made = parser.add_argument_group("synthetic data")
    made.add_argument("--rows", type=int, default=100_000, help="people; default 100000")
    made.add_argument("--features", type=int, default=30, help="columns in all; default 30")
    made.add_argument("--informative", type=int, default=6, help="that matter; default 6")
    made.add_argument("--label-noise", type=float, default=0.5, help="label noise to signal; 0.5")
    made.add_argument("--seed", type=int, default=0, help="of data, never of noise")


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
    share: float | None = arguments.bounds_share
    if share is None:
        return usual
    if not 0.0 <= share < 1.0:
        raise BadArgument("bounds_share", "must be at least 0 and below 1")
    return share


def check_parties(count: int, *, most: int) -> None:
    """Refuse a number of parties that is none."""
    if not 1 <= count <= most:
        raise BadArgument("parties", f"must lie between 1 and {most}")


def check_data_options(
    arguments: argparse.Namespace, *, parties: int, max_rows: int, max_features: int
) -> None:
    """Refuse numbers of synthetic data that give no table."""
    correlation = arguments.correlation
    checks = {
        "rows": (10 <= arguments.rows <= max_rows, f"must lie between 10 and {max_rows}"),
        "features": (
            parties <= arguments.features <= max_features,
            f"needs at least one for each party, and at most {max_features}",
        ),
        "informative": (arguments.informative >= 1, "must be at least 1"),
        "label_noise": (0.0 < arguments.label_noise <= 1000.0, "must be above 0 and at most 1000"),
        "correlation": (
            correlation is None or 0.0 <= correlation < 1.0,
            "must be at least 0 and below 1",
        ),
    }
    for name, (fine, text) in checks.items():
        if not fine:
            raise BadArgument(name, text)


def check_seed(seed: int) -> None:
    """Refuse a seed that is none."""
    if seed < 0:
        raise BadArgument("seed", "cannot be negative")


def owner_of(arguments: argparse.Namespace, parties: Sequence[str]) -> str | None:
    """Return who alone has the label, or None if every party does."""
    owner: str | None = arguments.label_owner
    if owner not in (None, *parties):
        raise BadArgument("label_owner", f"must be one of {', '.join(parties)}")
    return owner
