"""A simulated job over clients, from its clients to a report with the quality of its model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colonnade.client import AdmmOptions
from colonnade.client.admm_planning import admm_spec
from colonnade.client.builder import job_over_clients
from colonnade.client.planning import delta_of
from colonnade.core.text import counted
from colonnade.methods.admm.secure.claims import cohort_promise
from colonnade.simulate.admm.run import Dealt, Judged, found, judged
from colonnade.simulate.run import Clock, Say, Show, run_job

_ROUND_S, _OPEN_S = 300, 600  # of a busy machine; a process that has ended is noticed at once


@dataclass(frozen=True, slots=True)
class ClientsJob:
    """A job over clients to simulate.

    Parameters
    ----------
    drop_out
        Chance that a client is away.
    facts
        What the report says of how the clients came about.
    seed
        Of the references that the model is compared with; noise has none.
    """

    dealt: Dealt
    target: str
    options: AdmmOptions
    drop_out: float
    facts: Mapping[str, float | str]
    seed: int


def run_clients(
    folder: Path,
    setup: ClientsJob,
    *,
    show: Show,
    say: Say,
    clock: Clock,
    unfinished: Callable[[Mapping[str, Any]], object] | None = None,
) -> Judged:
    """Run the job in ``folder``; return its report, with the quality of its model."""
    dealt, clients = setup.dealt, len(setup.dealt.clients)
    spec = admm_spec(
        setup.options,
        clients=clients,
        features=len(dealt.sites[0].encoded()),
        hosts=len(dealt.sites),
    )
    most = counted(spec.max_participations, "time")
    say(
        f"{counted(clients, 'client')} at {counted(len(dealt.sites), 'host')}; plan: admm, "
        f"{counted(spec.rounds, 'round')} of {spec.sampled}; each answers at most {most}"
    )
    delta, secure = delta_of(setup.options, clients), bool(spec.maskers)
    if secure:
        say(cohort_promise(spec, delta))
    federation = found(
        folder, dealt, cap_units=spec.max_units, drop_out=setup.drop_out, cohort=secure
    )
    clock.mark("prepared")
    outcome = run_job(
        federation,
        lambda offers: job_over_clients(
            spec,
            offers,
            target=setup.target,
            name=f"simulated {setup.target} over clients",
            delta=delta,
            round_timeout_s=_ROUND_S,
            timeout_s=_OPEN_S,
        ),
        show=show,
        clock=clock,
        unfinished=unfinished,
    )
    say("scoring the model beside its references")
    report = {**outcome.report, "simulation": dict(setup.facts)}
    return judged(report, spec, dealt, seed=setup.seed)
