"""The options of a job over clients."""

import argparse
from dataclasses import fields

from colonnade.client import AdmmOptions
from colonnade.client.planning import REGULARISERS


def add_method_options(parser: argparse.ArgumentParser) -> None:
    """Add what describes the job."""
    parser.add_argument("--sampled", type=int, help="clients of a round; default a fifth")
    parser.add_argument("--sampling", choices=("fixed", "poisson"), default="fixed")
    parser.add_argument("--minimum", type=int, help="least answers of a round; default half")
    parser.add_argument("--rounds", type=int, default=10, help="default 10")
    parser.add_argument("--regulariser", choices=REGULARISERS, default="l2")
    parser.add_argument("--strength", type=float, help="of it; default 0.001, of a box 1")
    parser.add_argument("--gamma", type=float, default=5.0, help="proximal step; default 5")
    parser.add_argument("--lipschitz", type=float, default=0.1, help="clip over gamma; default 0.1")
    parser.add_argument("--step", type=float, default=0.5, help="lambda; default 0.5")
    parser.add_argument(
        "--dual-weight",
        type=float,
        default=0.0,
        help="of a client's dual in what it is sent; 1 is the published algorithm, which strong "
        "noise throws off; default 0",
    )
    parser.add_argument("--epsilon", type=float, default=8.0, help="of each client; default 8")
    parser.add_argument("--delta", type=float, help="default min(1e-6, 1 / (10 clients))")


def admm_options_of(arguments: argparse.Namespace) -> AdmmOptions:
    """Return what was asked for."""
    return AdmmOptions(**{each.name: getattr(arguments, each.name) for each in fields(AdmmOptions)})
