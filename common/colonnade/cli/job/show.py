"""``colonnade job show``: where a job stands, and its plan."""

import argparse
import json
from contextlib import suppress
from datetime import UTC, datetime

from colonnade.cli.job.connection import (
    add_client_options,
    open_client,
    print_notes,
    view_as_json,
)
from colonnade.cli.text import plan_text
from colonnade.client.align_builder import people_in_common
from colonnade.client.description import describe
from colonnade.client.views import PartyOffer
from colonnade.core.errors import ColonnadeError
from colonnade.privacy.accounting import format_units


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_client_options(parser, job=True)


def run(arguments: argparse.Namespace) -> int:
    """Show the job."""
    with open_client(arguments) as client:
        details = client.show(arguments.job)
        offers, people = list[PartyOffer](), dict[tuple[str, ...], int]()
        with suppress(ColonnadeError):  # a job is shown, whatever its parties offer now
            offers = client.parties()
            if details.job.evaluation_units:
                people = people_in_common(offers, client.alignment)
    view, plan = details.view, describe(details.job, offers, people)
    if arguments.json:
        print(json.dumps(view_as_json(view) | {"spec": plan}))
        return 0
    print(
        f"job        {view.job_id}\nname       {view.name}\nstate      "
        + f"{view.state} {view.reason}".rstrip()
    )
    print(f"rounds     {view.rounds_done} of {view.rounds}")
    when = datetime.fromtimestamp(view.submitted_at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    print(f"submitted  {when} by {view.submitted_by}")
    if view.advice:
        print(f"to do      {view.advice}")
    print(f"purpose    {view.purpose or '(none said)'}")
    delta = details.job.delta
    for party in view.parties:
        state = "attached" if party.attached else "away"
        waits = ", awaited" if party.awaited else ""
        waits += f" ({party.waiting})" if party.waiting and not view.ended else ""
        print(
            f"  {party.party:<16} {state}{waits}; {format_units(party.spent_units, delta)} of "
            f"{format_units(party.max_units, delta)}; {party.payload_bytes} bytes"
        )
    print_notes(view.notes, as_json=False)
    print(plan_text(plan))
    return 0
