"""The options of a job over clients."""

import argparse
from dataclasses import fields

from colonnade.client import AdmmOptions
from colonnade.client.admm_planning import AGGREGATES, CLIENTS, REGULARISERS, VARIANTS


def add_method_options(parser: argparse.ArgumentParser) -> None:
    """Add what describes the job."""
    parser.add_argument(
        "--variant",
        choices=VARIANTS,
        default="planned",
        help="planned: averaged proximal steps, nothing to tune; paper: consensus ADMM with duals; "
        "default planned",
    )
    parser.add_argument(
        "--aggregate",
        choices=AGGREGATES,
        default="none",
        help="host: hosts release the sum of their clients' answers with one noise, which protects "
        "clients against everybody but their host; cohort: only the sum over all hosts is opened, "
        "which holds if the hosts follow the protocol and every host's policy grants; default none",
    )
    parser.add_argument(
        "--colluding",
        type=int,
        metavar="N",
        help="cohort: hosts that may tell the coordinator what they know; default a third, or as "
        "many as leave three honest ones in every sum",
    )
    parser.add_argument(
        "--expected-rows", type=int, help="planned: rows that clients have, roughly; default 50"
    )
    parser.add_argument("--sampled", type=int, help="clients of a round; default a fifth")
    parser.add_argument("--sampling", choices=("fixed", "poisson"), default="fixed")
    parser.add_argument("--minimum", type=int, help="least answers of a round; default half")
    parser.add_argument(
        "--rounds", type=int, default=10, help="of displacements; planned has 5 more; default 10"
    )
    parser.add_argument("--regulariser", choices=REGULARISERS, default="l2")
    parser.add_argument("--strength", type=float, help="of it; default 0.001, of a box 1")
    parser.add_argument(
        "--gamma", type=float, help="proximal or gradient step; default by the variant"
    )
    parser.add_argument("--lipschitz", type=float, help="clip over gamma; default by the variant")
    parser.add_argument("--step", type=float, help="paper: lambda; default 0.5")
    parser.add_argument(
        "--dual-weight",
        type=float,
        help="paper: of a client's dual in what it is sent; 1 is the published algorithm, which "
        "strong noise throws off; default 0",
    )
    parser.add_argument("--epsilon", type=float, default=8.0, help="of each client; default 8")
    parser.add_argument("--delta", type=float, help="default min(1e-6, 1 / (10 clients))")


def add_alike_option(parser: argparse.ArgumentParser) -> None:
    """Add whether clients' rows are of like distributions."""
    parser.add_argument(
        "--clients",
        dest="likeness",
        choices=CLIENTS,
        default="alike",
        help="planned: different takes gradient steps, for clients with rows of one class each; "
        "default alike",
    )


class CountOrLikeness(argparse.Action):
    """Read ``--clients 500``, ``--clients different`` or ``--clients 500 different``."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        """Set how many clients there are, or whether they are alike."""
        for value in values if isinstance(values, list) else []:
            if value in CLIENTS:
                namespace.likeness = value
                continue
            try:
                namespace.clients = int(value)
            except ValueError:
                parser.error(f"argument --clients: must be a number, or {' or '.join(CLIENTS)}")


def admm_options_of(arguments: argparse.Namespace) -> AdmmOptions:
    """Return what was asked for."""
    names = [each.name for each in fields(AdmmOptions) if each.name != "clients"]
    given = {name: getattr(arguments, name) for name in names}
    return AdmmOptions(clients=arguments.likeness, **given)
