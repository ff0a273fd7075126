"""A simulation whose parties list different people: align, ingest, then run the job.

Every party has a random part of all people, in an order of its own. What follows is what a real
federation does: parties run without tables, an operator has them aligned, each ingests its own file
by the rows that it was given, and the job is planned for as many rows as the alignment has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.client.align_builder import AlignOptions, author_alignment, people_counted
from colonnade.client.planning import budget_of
from colonnade.core.arguments import BadArgument
from colonnade.core.arrays import IntArray
from colonnade.privacy.membership import MembershipNoise
from colonnade.simulate.federation import Federation, create_federation, ingest_aligned
from colonnade.simulate.run import (
    AlignedFederation,
    Clock,
    ColumnsJob,
    Say,
    Show,
    run_columns,
    run_job,
)
from colonnade.simulate.sites import Site

_LEAST_PEOPLE = 10
_OPTIONS = AlignOptions()


@dataclass(frozen=True, slots=True)
class Aligned:
    """A federation whose parties have ingested by one alignment, and the alignment's report."""

    federation: Federation
    report: dict[str, Any]

    @property
    def n_rows(self) -> int:
        """Rows that jobs use."""
        return int(self.report["alignment"]["kept"])

    @property
    def people(self) -> dict[tuple[str, ...], int]:
        """How many people one party or several have, from counts with noise."""
        return people_counted(self.report["alignment"])


def check_part_of_people(part: float, n_people: int) -> int:
    """Return how many people a party lists; refuse a part that is none or leaves too few."""
    count = round(part * n_people) if 0.0 < part <= 1.0 else 0
    if count < _LEAST_PEOPLE:
        raise BadArgument("overlap", f"must be at most 1 and leave a party {_LEAST_PEOPLE} people")
    return count


def deal(n_people: int, parties: Sequence[str], part: float, *, seed: int) -> dict[str, IntArray]:
    """Return whom each party lists: a random part of all people, in a random order."""
    count = check_part_of_people(part, n_people)
    draw = np.random.default_rng([seed, 15])
    return {name: draw.permutation(n_people)[:count].astype(np.int64) for name in parties}


def run_overlapping(
    folder: Path, setup: ColumnsJob, part: float, *, show: Show, say: Say, clock: Clock
) -> dict[str, Any]:
    """Align people of whom each party has a part, run the job, and return its report with both."""
    sites, n_people = setup.divided.fitted, setup.divided.n_rows
    units = budget_of(setup.options, n_rows=n_people, n_parties=len(sites))
    check_part_of_people(part, n_people)
    say(f"each party has {part:.0%} of {n_people} people: aligning them")
    # Twice the budget is the cap: the plan is for the rows that come out, which are not known yet.
    aligned = align(
        folder,
        sites,
        part,
        cap_units=2 * units,
        seed=setup.seed,
        show=show,
        sealed=setup.options.exchange == "sealed",
    )
    made = AlignedFederation(aligned.federation, aligned.n_rows, aligned.people)
    report = run_columns(folder, setup, show=show, say=say, clock=clock, made=made)
    uplink = aligned.report["uplink"]
    sent = {name: uplink[name] for name in ("payload_bytes", "predicted_bytes")}
    return {**report, "alignment": {**aligned.report["alignment"], **sent, "part": part}}


def align(
    folder: Path,
    sites: Sequence[Site],
    part: float,
    *,
    cap_units: int,
    seed: int,
    show: Show,
    sealed: bool = False,
) -> Aligned:
    """Make a federation without tables, align its people with real processes, and ingest."""
    n_people = len(sites[0].features[0].values)
    names = [site.party for site in sites]
    noise = MembershipNoise.within(_OPTIONS.epsilon, _OPTIONS.delta)
    federation = create_federation(
        folder,
        sites,
        cap_units=cap_units,
        people=deal(n_people, names, part, seed=seed),
        membership_units=noise.cost,
        sealed=sealed,
    )
    outcome = run_job(
        federation,
        lambda offers: author_alignment(offers, _OPTIONS, timeout_s=60),
        show=show,
        clock=Clock(),
    )
    ingest_aligned(federation)
    return Aligned(federation, dict(outcome.report))
