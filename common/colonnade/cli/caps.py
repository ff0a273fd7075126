"""The options that state a cap or a price, shared by the commands that take one."""

import argparse
import math


def add_cap_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--rho``, or ``--epsilon`` with ``--delta``."""
    cap = parser.add_mutually_exclusive_group(required=True)
    cap.add_argument("--rho", type=float, help="cap as rho of zero-concentrated privacy")
    cap.add_argument("--epsilon", type=float, help="cap as epsilon, with --delta")
    parser.add_argument("--delta", type=float, default=1e-6, help="default 1e-6")


def cap_units(arguments: argparse.Namespace) -> tuple[int, str]:
    """Return the cap in units and how it was stated."""
    units = units_of(arguments, "cap")
    if arguments.rho is not None:
        return units, f"rho {arguments.rho:g}"
    return units, f"epsilon {arguments.epsilon:g} at delta {arguments.delta:g}"


def units_of(arguments: argparse.Namespace, what: str) -> int:
    """Return what ``--rho``, or ``--epsilon`` with ``--delta``, comes to in units."""
    from colonnade.core.errors import BadInput
    from colonnade.privacy.accounting import MAX_UNITS, rho_of, units_down

    rho, epsilon, delta = arguments.rho, arguments.epsilon, arguments.delta
    if not 0.0 < delta < 1.0:  # also with --rho, for what is printed
        raise BadInput(f"the {what} is no use: delta must lie strictly between 0 and 1")
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


def told_as_epsilon(error: Exception, arguments: argparse.Namespace) -> str:
    """Return a refusal in rho together with the price as it was stated, in epsilon."""
    if arguments.epsilon is None:
        return str(error)
    delta = "" if arguments.delta is None else f" at delta {arguments.delta:g}"
    return f"{error} (asked for: epsilon {arguments.epsilon:g}{delta})"
