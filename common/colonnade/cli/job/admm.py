"""``colonnade job admm``: submit a job over the clients of the parties that are attached."""

import argparse

from colonnade.cli.admm_options import add_method_options, check_method, spec_of
from colonnade.cli.amounts import delta_of
from colonnade.cli.job.connection import add_client_options, open_client
from colonnade.cli.job.hand_in import add_hand_in_options, add_party_options, hand_in, who
from colonnade.client.admm_builder import Frame, job_over_clients
from colonnade.client.client import PartyOffer
from colonnade.client.participants import lack_in_rows, participants
from colonnade.methods.job import Job
from colonnade.wire.jobspec import job_to_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_client_options(parser)
    parser.add_argument("--target", metavar="NAME", required=True, help="the label")
    add_party_options(parser)
    parser.add_argument("--loss", choices=("squared", "logistic"), default="squared")
    add_method_options(parser)
    parser.add_argument(
        "--round-timeout", type=int, default=60, help="seconds until a round closes; default 60"
    )
    parser.add_argument("--timeout", type=int, default=3600, help="seconds a round may stay open")
    add_hand_in_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Submit the job that the options ask for."""
    check_method(arguments)
    with open_client(arguments) as client:
        return hand_in(client, job_to_bytes(_job(arguments, client.parties())), arguments)


def _job(arguments: argparse.Namespace, offers: list[PartyOffer]) -> Job:
    chosen = participants(offers, lack=lack_in_rows, **who(arguments))
    clients = sum(offer.clients for offer in chosen)
    spec = spec_of(arguments, clients=clients, features=len(chosen[0].features))
    frame = Frame(
        arguments.name or f"{arguments.target} over {clients} clients",
        delta_of(arguments, clients),
        arguments.round_timeout,
        arguments.timeout,
    )
    return job_over_clients(spec, chosen, target=arguments.target, frame=frame)
