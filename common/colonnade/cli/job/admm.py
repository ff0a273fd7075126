"""``colonnade job admm``: submit a job over the clients of the parties that are attached."""

import argparse

from colonnade.cli.job.connection import add_client_options, open_client
from colonnade.cli.job.hand_in import add_hand_in_options, add_party_options, hand_in, who
from colonnade.cli.options.admm import add_alike_option, add_method_options, admm_options_of
from colonnade.client.admm_planning import check_admm


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_client_options(parser)
    parser.add_argument("--target", metavar="NAME", required=True, help="the label")
    add_party_options(parser)
    parser.add_argument("--loss", choices=("squared", "logistic"), default="squared")
    add_alike_option(parser)
    add_method_options(parser)
    parser.add_argument(
        "--round-timeout", type=int, default=60, help="seconds until a round closes; default 60"
    )
    parser.add_argument("--timeout", type=int, default=3600, help="seconds a round may stay open")
    add_hand_in_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Submit the job that the options ask for."""
    options = admm_options_of(arguments)
    check_admm(options)  # before the coordinator is asked
    with open_client(arguments) as client:
        plan = client.plan_admm(
            options,
            target=arguments.target,
            name=arguments.name,
            purpose=arguments.purpose,
            round_timeout_s=arguments.round_timeout,
            timeout_s=arguments.timeout,
            **who(arguments),
        )
        return hand_in(client, plan, arguments)
