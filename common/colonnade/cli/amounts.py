"""Amounts of privacy: the options that state one, and how one is shown."""

import argparse
import math

from colonnade.core.errors import BadInput
from colonnade.privacy.accounting import (
    MAX_UNITS,
    default_delta,
    delta_for,
    epsilon_of,
    format_units,
    format_upper_bound,
    rho_from_units,
    rho_of,
    units_down,
)


def add_cap_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--rho``, or ``--epsilon`` with ``--delta``."""
    cap = parser.add_mutually_exclusive_group(required=True)
    cap.add_argument("--rho", type=float, help="cap as rho of zero-concentrated privacy")
    cap.add_argument("--epsilon", type=float, help="cap as epsilon, with --delta")
    add_delta(parser)


def add_delta(parser: argparse.ArgumentParser, what: str = "") -> None:
    """Add ``--delta``, which `delta_of` reads."""
    parser.add_argument("--delta", type=float, help=f"{what}default 1e-6, at most 1e-3")


def delta_of(arguments: argparse.Namespace, n_rows: int | None = None) -> float:
    """Return the delta that was asked for, or the default; refuse one that protects nobody."""
    try:
        return delta_for(arguments.delta, n_rows)
    except ValueError as error:
        raise BadInput(f"--{error}") from None


def cap_units(arguments: argparse.Namespace) -> tuple[int, str]:
    """Return the cap in units and how it was stated, at the usual delta too if that is smaller."""
    units, delta, usual = units_of(arguments, "cap"), delta_of(arguments), default_delta()
    if arguments.rho is not None:
        return units, f"rho {arguments.rho:g}"
    stated = f"epsilon {arguments.epsilon:g} at delta {delta:g}"
    if delta > usual:
        epsilon = format_upper_bound(epsilon_of(rho_from_units(units), usual))
        stated += f", which is epsilon {epsilon} at delta {usual:g}"
    return units, stated


def units_of(arguments: argparse.Namespace, what: str, n_rows: int | None = None) -> int:
    """Return what ``--rho``, or ``--epsilon`` with ``--delta``, comes to in units."""
    rho, epsilon = arguments.rho, arguments.epsilon
    delta = delta_of(arguments, n_rows)  # also with --rho, for what is printed
    if not math.isfinite(epsilon if rho is None else rho):
        raise BadInput(f"the {what} is no use: it must be finite")
    if rho is None and epsilon <= 0.0:
        raise BadInput(f"the {what} is no use: epsilon must be positive")
    try:
        units = units_down(rho_of(epsilon, delta) if rho is None else rho)
    except (ValueError, OverflowError):  # beyond what numbers hold
        units = MAX_UNITS + 1
    if not 0 < units <= MAX_UNITS:
        raise BadInput(f"the {what} must be positive and at most rho 8191")
    return units


def with_stated_epsilon(error: Exception, arguments: argparse.Namespace) -> str:
    """Return a refusal in rho together with the price as it was stated, in epsilon."""
    if arguments.epsilon is None:
        return str(error)
    delta = "" if arguments.delta is None else f" at delta {arguments.delta:g}"
    return f"{error} (asked for: epsilon {arguments.epsilon:g}{delta})"


def amount_as_json(units: int, delta: float) -> dict[str, float]:
    """Return an amount as units, as rho and as epsilon."""
    rho = rho_from_units(units)
    return {"units": units, "rho": rho, "epsilon": epsilon_of(rho, delta), "delta": delta}


def format_amount(units: int, delta: float, *, left: bool = False) -> str:
    """Return an amount for people; what is ``left`` is rounded down."""
    return f"{format_units(units, delta, left=left)} at delta {delta:g}"
