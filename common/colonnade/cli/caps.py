"""The options that state a cap, shared by the commands that take one."""

import argparse


def add_cap_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--rho``, or ``--epsilon`` with ``--delta``."""
    cap = parser.add_mutually_exclusive_group(required=True)
    cap.add_argument("--rho", type=float, help="cap as rho of zero-concentrated privacy")
    cap.add_argument("--epsilon", type=float, help="cap as epsilon, with --delta")
    parser.add_argument("--delta", type=float, default=1e-6, help="default 1e-6")


def cap_units(arguments: argparse.Namespace) -> tuple[int, str]:
    """Return the cap in units and how it was stated."""
    from colonnade.core.errors import BadInput
    from colonnade.privacy.accounting import MAX_UNITS, rho_of, units_down

    try:
        if arguments.rho is not None:
            units, told = units_down(arguments.rho), f"rho {arguments.rho:g}"
        else:
            units = units_down(rho_of(arguments.epsilon, arguments.delta))
            told = f"epsilon {arguments.epsilon:g} at delta {arguments.delta:g}"
    except (ValueError, OverflowError) as error:
        raise BadInput(f"the cap is no use: {error}") from None
    if not 0 < units <= MAX_UNITS:
        raise BadInput("the cap must be positive and at most rho 8191")
    return units, told
