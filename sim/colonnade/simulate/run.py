"""A whole simulated job over columns: make the federation, run its processes, score, report."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from colonnade.client import JobOptions, JobView, PartyOffer
from colonnade.client.builder import job_over_columns
from colonnade.client.description import expected_idle
from colonnade.client.planning import (
    budget_of,
    delta_of,
    evaluation_units,
    holdout_of,
    plan_of,
)
from colonnade.core.errors import JobEnded
from colonnade.core.text import counted
from colonnade.ledger.create import open_ledger
from colonnade.ledger.gate import Gate
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.base import MethodPlan, MethodSpec
from colonnade.methods.bounds_budget import BoundsBudget
from colonnade.methods.holdout import people_fitted, rows_fitted
from colonnade.methods.job import Job
from colonnade.methods.problem import Loss
from colonnade.methods.sealed.ring import available
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.party.data.bounding.bounds import buy_bounds
from colonnade.party.data.dataset import open_dataset
from colonnade.privacy.sampling import OsNoise
from colonnade.simulate.data.held_out import Divided
from colonnade.simulate.evaluation.quality import References, reference_scores, scored
from colonnade.simulate.federation import Federation, create_federation, only_mine
from colonnade.simulate.forks.client import begun
from colonnade.simulate.processes import Processes
from colonnade.simulate.sites import Site

T = TypeVar("T")
MakeJob = Callable[[Sequence[PartyOffer]], Job]
Show = Callable[[Iterable[JobView]], Iterator[JobView]]
Say = Callable[[str], None]


@dataclass(slots=True)
class Clock:
    """Seconds since the start, noted by name."""

    began: float = field(default_factory=time.monotonic)
    marks: dict[str, float] = field(default_factory=dict)

    def mark(self, name: str) -> None:
        """Note the first time that something happened."""
        self.marks.setdefault(name, time.monotonic() - self.began)


@dataclass(frozen=True, slots=True)
class AlignedFederation:
    """A federation that is there already, the number of its rows, and who has how many people."""

    federation: Federation
    n_rows: int
    people: Mapping[tuple[str, ...], int]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a simulated job gave."""

    report: Mapping[str, Any]
    job: Job
    clock: Clock


@dataclass(frozen=True, slots=True)
class ColumnsJob:
    """A job over columns to simulate.

    Parameters
    ----------
    bounds_share
        Part of the budget that buys tighter bounds; None leaves it to the rule.
    seed
        Of the references that the model is compared with; noise has none.
    references
        Whether the model is compared with any; a wide table's take longer than the job.
    """

    divided: Divided
    options: JobOptions
    bounds_share: float | None
    seed: int
    references: bool = True

    def plan(
        self, n_rows: int, people: Mapping[tuple[str, ...], int] | None = None
    ) -> tuple[MethodPlan[Any], BoundsBudget]:
        """Return the plan, and what each party pays for bounds besides."""
        sites, n_all = self.divided.fitted, n_rows
        n_rows = rows_fitted(n_all, holdout_of(self.options))
        units = budget_of(self.options, n_rows=n_rows, n_parties=len(sites))
        columns = bounded_columns(sites, Loss(self.options.loss))
        bounds = BoundsBudget.of(columns, n_rows=n_rows, units=units, share=self.bounds_share)
        features = {site.party: tuple(each.name for each in site.encoded()) for site in sites}
        plan = plan_of(
            self.options,
            features,
            n_rows=n_rows,
            units=units - bounds.set_aside,
            owner=self.options.label_owner,
            groups={site.party: site.groups() for site in sites if any(site.groups())},
            presence=people is not None,
            people=people_fitted(people or {}, n_all=n_all, n_fitted=n_rows),
        )
        if isinstance(plan.spec, SealedSpec) and not available():
            raise ModuleNotFoundError(name="seal")  # before tables are made and parties refuse
        return plan, bounds


def run_columns(
    folder: Path,
    setup: ColumnsJob,
    *,
    show: Show,
    say: Say,
    clock: Clock,
    made: AlignedFederation | None = None,
) -> dict[str, Any]:
    """Run the job in ``folder``, or in ``made``; return its report, with its model's quality."""
    with begun():  # imports while the tables are made
        federation, plan, bounds = _prepared(folder, setup, say, made)
        clock.mark("prepared")
        sites, fits = setup.divided.fitted, list[Future[References]]()
        target = next(site.label.name for site in sites if site.label is not None)

        def make_job(offers: Sequence[PartyOffer]) -> Job:
            job = job_over_columns(
                plan.spec,
                offers,
                target=target,
                name=f"simulated {target}",
                delta=delta_of(setup.options, plan.spec.population),
                timeout_s=300,  # of a busy machine
                holdout=holdout_of(setup.options),
                evaluation_units=evaluation_units(setup.options, plan.spec.population),
            )
            if setup.references:
                fit = partial(reference_scores, job, setup.divided, seed=setup.seed)
                fits.append(_meanwhile(fit))
            return job

        outcome = run_job(federation, make_job, show=show, clock=clock)
    say("scoring the model" + (" beside its references" if fits else ""))
    found = fits[0].result() if fits else None
    quality = scored(outcome.job, outcome.report["path"], setup.divided, references=found)
    report = {**outcome.report, "quality": quality}
    report["privacy"]["bounds_note"] = bounds.note
    return report


def _prepared(
    folder: Path, setup: ColumnsJob, say: Say, made: AlignedFederation | None
) -> tuple[Federation, MethodPlan[Any], BoundsBudget]:
    """Plan the job and make its federation, if there is none yet."""
    sites, n_rows = setup.divided.fitted, setup.divided.n_rows if made is None else made.n_rows
    plan, bounds = setup.plan(n_rows, None if made is None else made.people)
    columns = sum(len(site.encoded()) for site in sites)
    say(
        f"{counted(len(sites), 'party', 'parties')}, {n_rows} people, "
        f"{counted(columns, 'feature')}; plan: {plan.spec.kind}, "
        f"{counted(plan.spec.rounds, 'round')}"
    )
    say(bounds.note)
    for each in expected_idle(plan.spec):
        say(f"note: {each['note']}")
    if made is None:
        later = evaluation_units(setup.options, plan.spec.population)
        evaluator = next(part.party for part in plan.spec.parts if part.holds_label)
        federation = prepare(
            folder, sites, plan.spec, prices=bounds.prices, later={evaluator: later}
        )
    else:
        federation = made.federation
        buy_all(federation, sites, plan.spec, prices=bounds.prices)
    return federation, plan, bounds


def _meanwhile(work: Callable[[], T]) -> "Future[T]":
    """Do something in a thread that nobody waits for unless its result is wanted."""
    future = Future[T]()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whoever wants the result is told
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def bounded_columns(sites: Sequence[Site], loss: Loss) -> dict[str, int]:
    """Return how many columns of each party may need tighter bounds: a class has its own."""
    counts = {
        site.party: sum(not each.is_exact for each in site.features) + _buys_label(site, loss)
        for site in sites
    }
    return {party: count for party, count in counts.items() if count}


def prepare(
    folder: Path,
    sites: Sequence[Site],
    spec: MethodSpec,
    *,
    prices: Mapping[str, int],
    later: Mapping[str, int],
) -> Federation:
    """Make the federation on disk; each party's cap is exactly what it will be asked to pay.

    ``prices`` are what parties pay for bounds of `bounded_columns`, in units; empty for none.
    ``later`` is what they pay after the job.
    """
    caps = {
        site.party: spec.max_units(site.party)
        + prices.get(site.party, 0)
        + later.get(site.party, 0)
        for site in sites
    }
    sealed = spec.kind == SealedSpec.kind
    federation = create_federation(folder, sites, cap_units=caps, sealed=sealed)
    buy_all(federation, sites, spec, prices=prices)
    return federation


def buy_all(
    federation: Federation, sites: Sequence[Site], spec: MethodSpec, *, prices: Mapping[str, int]
) -> None:
    """Buy bounds at every party that pays for them."""
    for site in (site for site in sites if site.party in prices):
        ledger, label = federation.ledger(site.party), _buys_label(site, spec.loss)
        _buy(federation.folder / site.party, ledger, prices[site.party], label=label)


def run_job(
    federation: Federation,
    make_job: MakeJob,
    *,
    show: Show,
    clock: Clock,
    unfinished: Callable[[Mapping[str, Any]], object] | None = None,
) -> RunOutcome:
    """Run a job with real processes until it ends; the processes end with it.

    Parameters
    ----------
    unfinished
        Takes the report of a job that did not finish.
    """
    with Processes(federation, federation.folder / "logs") as processes:
        with processes.client() as client, processes.blamed():
            offers = processes.wait_for_parties(client)
            clock.mark("attached")
            job = make_job(offers)
            job_id = client.submit(job)
            clock.mark("submitted")
            view = None
            for view in show(client.watch(job_id)):
                if view.rounds_done:
                    clock.mark("first_round")
            clock.mark("ended")
            report = client.report(job_id).document
        if view is None or view.state != "finished":
            if unfinished is not None:
                unfinished(report)
            processes.check()
            reason = "no answer" if view is None else f"{view.state}: {view.reason}"
            raise JobEnded(f"the simulated job did not finish ({reason})")
    return RunOutcome(report, job, clock)


def _buys_label(site: Site, loss: Loss) -> bool:
    return site.label is not None and loss is Loss.SQUARED and not site.label.is_exact


@only_mine()
def _buy(home: Path, files: LedgerFiles, units: int, *, label: bool) -> None:
    ledger = open_ledger(files)
    try:
        gate = Gate(ledger, OsNoise())
        with open_dataset(home / "data") as dataset:
            buy_bounds(dataset, ledger, gate, units=units, label=label)
    finally:
        ledger.close()
