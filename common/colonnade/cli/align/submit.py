"""``colonnade align submit``: from options to an alignment that the coordinator has."""

import argparse

from colonnade.cli.align.show import learned_lines, summary_lines
from colonnade.cli.job.connection import add_client_options, open_client
from colonnade.cli.job.hand_in import add_hand_in_options, add_party_options, hand_in, who
from colonnade.client.align_builder import AlignOptions, extended
from colonnade.wire.jobspec import job_from_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_client_options(parser)
    add_party_options(parser)
    parser.add_argument(
        "--mode",
        choices=("union", "left", "inner"),
        default="union",
        help="who gets a row: all, those of the first party, those of every party",
    )
    parser.add_argument(
        "--id",
        action="append",
        metavar="RULES",
        help="how one id column is written, once for each: plain, fold-case, digits-only, number "
        "(digits without leading zeros), no-trim, nfc, as-is, joined by commas; default: as the "
        "parties' policies say",
    )
    parser.add_argument(
        "--repeated",
        choices=("refuse", "first"),
        help="what a party does that lists a person twice; default: as the parties' policies say",
    )
    parser.add_argument(
        "--extend",
        metavar="ALIGNMENT",
        help="new people later: everybody keeps the row of this alignment; parties, mode and ids "
        "are its own",
    )
    parser.add_argument(
        "--min-new",
        type=int,
        default=100,
        help="with --extend: fewest new people of a party, as all policies say",
    )
    parser.add_argument("--epsilon", type=float, default=1.0, help="of membership, for each party")
    parser.add_argument("--delta", type=float, default=1e-9, help="of membership, for each party")
    parser.add_argument("--chunk", type=int, help="points in a message; default: about 1 MiB")
    parser.add_argument("--timeout", type=int, default=3600, help="seconds a party may stay away")
    add_hand_in_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Submit the alignment that the options ask for, and say what each side learns."""
    options = AlignOptions(
        mode=arguments.mode,
        ids=tuple(arguments.id) if arguments.id else None,
        repeated=arguments.repeated,
        epsilon=arguments.epsilon,
        delta=arguments.delta,
        chunk=arguments.chunk,
    )
    with open_client(arguments) as client:
        parties = who(arguments)
        if arguments.extend is not None:
            spec, section = client.alignment(arguments.extend)
            options = extended(options, spec, section, min_new=arguments.min_new)
            parties = {"parties": [part.party for part in spec.parts]}
        plan = client.plan_alignment(
            options,
            purpose=arguments.purpose,
            name=arguments.name,
            timeout_s=arguments.timeout,
            **parties,
        )
        if not arguments.json:
            print("\n".join(learned_lines(job_from_bytes(plan.spec))))

        def ended(name: str) -> None:
            report = client.report(name).document
            if not arguments.json and report.get("alignment") is not None:
                print("\n".join(summary_lines(report)))

        return hand_in(client, plan, arguments, ended)
