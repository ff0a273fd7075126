"""The analyst of the simulation: the story of `colonnade demo`, between containers.

    story.py EPSILON

Types the operator's commands and says of each step what came of it, what it cost and what left.
"""

import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from colonnade.cli.main import main
from colonnade.cli.telling import (
    align_lines,
    evaluation_lines,
    fit_lines,
    plan_lines,
    score_lines,
    the_only_other,
    unscored_lines,
)
from colonnade.client import Client
from colonnade.core.errors import ColonnadeError

LABEL, RECEIVER, PURPOSE = "readmitted", "hospital", "readmission study"
PARTIES = "hospital,laboratory,insurer"
FOR_EVALUATION = 0.4  # part of epsilon
PATIENCE = ("--timeout", "600")
DESK, RUNS = Path("/exchange"), Path("/runs")


def say(heading: str, lines: Sequence[str]) -> None:
    """Print a step."""
    print("\n".join([heading, *(f"   {line}" for line in lines)]), flush=True)


def typed(*words: str) -> dict[str, Any]:
    """Run a command of `colonnade` with ``--json`` and return its last object."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main([*words, "--json"])
    if code:
        sys.exit(code)  # it has said why
    found: dict[str, Any] = json.loads(out.getvalue().strip().splitlines()[-1])
    return found


def wait_for_tables(client: Client) -> None:
    """Wait until every party is back with a table in the alignment's order."""
    while True:
        ready = {each.party for each in client.parties() if each.attached and each.features}
        if ready >= set(PARTIES.split(",")):
            return
        time.sleep(0.5)


def wait_for(name: str) -> Path:
    """Wait for what somebody sends, and return where it is."""
    while not (DESK / name).exists():
        time.sleep(0.2)
    return DESK / name


def tell(client: Client, epsilon: float) -> None:
    """Tell all steps."""
    aligned = typed("align", "submit", "--parties", PARTIES, *PATIENCE, "--again", "--watch")
    report = client.report(aligned["job_id"]).document
    say("Align: one order of people, and nobody sees a list", align_lines(report))
    wait_for_tables(client)
    job = str(
        typed(
            *("job", "submit", "--target", LABEL, "--loss", "logistic", "--parties", PARTIES),
            *("--epsilon", str(epsilon), "--evaluate", str(FOR_EVALUATION * epsilon)),
            *("--purpose", PURPOSE, *PATIENCE, "--again", "--yes"),
        )["job_id"]
    )
    plan = client.plan(client.show(job).spec).description
    say("Plan and ask", plan_lines(job, plan, epsilon, RECEIVER))
    if code := main(["job", "watch", job]):
        sys.exit(code)
    found = client.report(job)
    found.write(RUNS / job[:12])  # what there is, whatever comes
    say("Fit", fit_lines(found.document, LABEL))
    if (alone := the_only_other(found.document, RECEIVER)) is not None:
        say("Nobody is scored", unscored_lines(alone, RECEIVER))
    else:
        use(client, job)
    print(f"the report is runs/{job[:12]}/report.html", flush=True)


def use(client: Client, job: str) -> None:
    """Measure the model and have the hospital's patients scored, once everybody has granted it."""
    (DESK / "job.new").write_text(job)
    (DESK / "job.new").rename(DESK / "job.txt")
    wait_for("granted")
    typed("job", "evaluate", job, *PATIENCE)
    found = client.report(job)
    say(
        "Evaluate on people who were kept out of the fit",
        evaluation_lines(found.document, RECEIVER),
    )
    found.write(RUNS / job[:12])
    scored = typed(
        *("job", "predict", job, "--rows", str(wait_for("rows.csv")), "--to", RECEIVER),
        *("--purpose", PURPOSE, *PATIENCE, "--watch", "--yes"),
    )["job_id"]
    count = client.report(scored)["prediction"]["rows"]
    say(
        "Score people without a joined table",
        [
            *score_lines(count, RECEIVER),
            f"they are in its volume and nowhere else: predictions/{scored[:12]}....csv",
        ],
    )


if __name__ == "__main__":
    address = os.environ["COLONNADE_COORDINATOR"]
    # Everything runs on one machine here, which may be slow: a report takes it a while.
    with Client(address, os.environ["COLONNADE_CREDENTIALS"], timeout_s=300.0) as connected:
        try:
            tell(connected, float(sys.argv[1]))
        except ColonnadeError as error:
            sys.exit(f"colonnade: {error}")
