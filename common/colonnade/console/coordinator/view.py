"""What the operator's page shows, from the coordinator's answers to a client.

Pure functions of values, so that every state can be tested without a browser.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colonnade.client.hub_views import CoordinatorView
from colonnade.client.results import JobReport
from colonnade.client.views import JobView, PartyOffer
from colonnade.console.coordinator.rounds import RoundRow, rounds
from colonnade.console.times import ago, days_left, full, moment
from colonnade.report.parts import colour_of
from colonnade.report.text import capital, count, in_words, listed, percent_down, size

_LEVEL_S = 0.5
STATES = {
    "proposed": ("warn", "Waits for parties"),
    "running": ("info", "Running"),
    "finished": ("good", "Finished"),
    "failed": ("bad", "Failed"),
    "cancelled": ("", "Cancelled"),
}
_ASKED = ("warn", "Waits for approval")
_REFUSED = ("bad", "Refused")
MEANINGS = {
    "unreachable": "a peer was away, or the denylist cannot be read",
    "policy_refused": "a party's policy or officer said no",
    "budget_exceeded": "it would cost more than is left",
    "bad_identity": "a certificate was not valid, or its key is denied",
    "certificate_expired": "a certificate has ended; it has to be renewed",
    "stale_epoch": "a newer session of the same party took over",
    "ledger_behind": "a party's ledger went back; see recovery",
    "duplicate_job": "the same question was asked before",
    "bad_input": "a request that could not be read",
}


@dataclass(frozen=True, slots=True)
class PartyRow:
    """A party in the table of parties."""

    name: str
    colour: int
    state: tuple[str, str]  # of a chip, and its word
    seen: str
    clock: str
    program: str
    people: str
    left: str
    certificate: tuple[str, str]


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job in the table of jobs."""

    job_id: str
    name: str
    purpose: str
    state: tuple[str, str]
    why: str
    asked: str
    rounds: str
    sent: str
    can_cancel: bool
    can_read: bool


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job that has not ended."""

    job_id: str
    name: str
    by: str
    progress: str
    waits: tuple[tuple[int, str], ...]  # colours and names
    spent: str
    parties: tuple[tuple[int, str], ...]
    rounds: tuple[RoundRow, ...]


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """An error by its code."""

    code: str
    meaning: str
    count: int
    share: float  # percent of the most frequent
    last_from: tuple[int, str] | None
    last: str


@dataclass(frozen=True, slots=True)
class OperatorPage:
    """The whole page."""

    federation: str
    program: str
    time: str
    chips: tuple[tuple[str, str], ...]
    headline: str
    lead: str
    parties: tuple[PartyRow, ...]
    live: tuple[LiveJob, ...]
    jobs: tuple[JobRow, ...]
    errors: tuple[ErrorRow, ...]
    errors_since: str


def operator_page(
    hub: CoordinatorView,
    offers: Sequence[PartyOffer],
    jobs: Sequence[JobView],
    reports: Mapping[str, JobReport],
) -> OperatorPage:
    """Return the page; ``reports`` are those of jobs that run."""
    now = hub.time
    colours = {offer.party: colour_of(place) for place, offer in enumerate(offers)}
    away = [offer.party for offer in offers if not offer.attached]
    running = [job for job in jobs if not job.ended]
    return OperatorPage(
        federation=hub.federation,
        program=hub.program,
        time=full(now),
        chips=_chips(offers, away),
        headline=headline(running, away, n_parties=len(offers)),
        lead=_lead(running, offers, away, now),
        parties=tuple(_party(offer, colours[offer.party], now) for offer in offers),
        live=tuple(_live(job, reports.get(job.job_id), colours) for job in running),
        jobs=tuple(_job(job, now) for job in jobs),
        errors=_errors(hub, colours),
        errors_since=moment(hub.started_at, now),
    )


def headline(running: Sequence[JobView], away: Sequence[str], *, n_parties: int) -> str:
    """Return the page's one statement, from numbers."""
    if not n_parties:
        return "No party has enrolled yet."
    waited = sorted({each.party for job in running for each in job.parties if each.awaited})
    if waited:
        jobs = sum(any(each.awaited for each in job.parties) for job in running)
        verb = "waits" if jobs == 1 else "wait"
        return f"{capital(count(jobs, 'job'))} {verb} for {listed(waited)}."
    if running:
        return f"{capital(count(len(running), 'job'))} running, nobody is waited for."
    if away:
        return f"Nothing is running; {in_words(len(away))} of {in_words(n_parties)} parties away."
    return f"Nothing is running; {_all(n_parties)} connected."


def _all(n_parties: int) -> str:
    return "the party is" if n_parties == 1 else f"all {in_words(n_parties)} parties are"


def _chips(offers: Sequence[PartyOffer], away: Sequence[str]) -> tuple[tuple[str, str], ...]:
    if not offers:
        return (("warn", "No party"),)
    if away:
        many = "party" if len(away) == 1 else "parties"
        return (("warn", capital(f"{in_words(len(away))} {many} away")),)
    return (("good", "All connected"),)


def _lead(
    running: Sequence[JobView], offers: Sequence[PartyOffer], away: Sequence[str], now: float
) -> str:
    if not offers:
        return "A party appears here with its first connection."
    said = []
    for offer in offers:
        if offer.party in away:
            seen = offer.session.seen_at or offer.told_at
            said.append(f"{capital(offer.party)} was last seen {ago(now - seen)}.")
    deciding = {each.party for job in running for each in job.parties if each.waiting}
    if deciding:
        said.append(f"People at {listed(sorted(deciding))} have yet to decide.")
    elif running:
        said.append("Rounds wait for a party that is away and go on by themselves.")
    ending = [
        offer.party
        for offer in offers
        if days_left(offer.session.certificate_ends, now)[0] in ("warn", "bad")
    ]
    if ending:
        verb = "ends" if len(ending) == 1 else "end"
        said.append(f"The certificate of {listed(ending)} {verb} soon; it has to be renewed.")
    return " ".join(said) or "Nobody needs to do anything."


def _party(offer: PartyOffer, colour: int, now: float) -> PartyRow:
    session = offer.session
    seen = session.seen_at or offer.told_at
    offset = session.clock_offset_s
    left = offer.left_units / offer.cap_units if offer.cap_units else 0.0
    return PartyRow(
        name=offer.party,
        colour=colour,
        state=("good", "Connected") if offer.attached else ("warn", "Away"),
        seen="now" if offer.attached else ago(now - seen) if seen else "never",
        clock="–" if offset is None else _offset(offset),
        program=session.program or "–",
        people=f"{offer.population:,d}" if offer.population else "no table yet",
        left=percent_down(left),
        certificate=days_left(session.certificate_ends, now),
    )


def _offset(seconds: float) -> str:
    """Return how far a clock is ahead; less than the messages' way is nothing."""
    return "level" if abs(seconds) < _LEVEL_S else f"{seconds:+.1f} s".replace("-", "−")


def _job(job: JobView, now: float) -> JobRow:
    waits = [
        f"{each.party}: {each.waiting}" if each.waiting else each.party
        for each in job.parties
        if each.awaited
    ]
    why = job.reason + (f"; {job.advice}" if job.reason and job.advice else "")
    if waits and not job.ended:
        why = "; ".join(waits)
    return JobRow(
        job_id=job.job_id,
        name=job.name,
        purpose=job.purpose,
        state=_state(job),
        why=why or "–",
        asked=moment(job.submitted_at, now),
        rounds=f"{job.rounds_done} of {job.rounds}",
        sent=size(sum(each.payload_bytes for each in job.parties)),
        can_cancel=not job.ended,
        can_read=job.state == "finished",
    )


def _state(job: JobView) -> tuple[str, str]:
    """Return a job's state in words: who decides, or that somebody said no, is part of it."""
    if job.state == "proposed" and any(each.waiting for each in job.parties):
        return _ASKED
    if job.state == "failed" and any(each.refusal for each in job.parties):
        return _REFUSED
    return STATES.get(job.state, ("", job.state))


def _live(job: JobView, report: JobReport | None, colours: Mapping[str, int]) -> LiveJob:
    named = tuple((colours.get(each.party, 0), each.party) for each in job.parties)
    waits = tuple((colours.get(each.party, 0), each.party) for each in job.parties if each.awaited)
    most = max((each.max_units for each in job.parties), default=0)
    spent = max((each.spent_units for each in job.parties), default=0)
    share = percent_down(spent / most) if most else percent_down(0.0)
    return LiveJob(
        job_id=job.job_id,
        name=job.name,
        by=job.submitted_by,
        progress=f"{job.rounds_done} of {job.rounds}",
        waits=waits,
        spent=share,
        parties=named,
        rounds=() if report is None else rounds(job, report),
    )


def _errors(hub: CoordinatorView, colours: Mapping[str, int]) -> tuple[ErrorRow, ...]:
    most = max((each.count for each in hub.errors), default=1)
    return tuple(
        ErrorRow(
            each.code,
            MEANINGS.get(each.code, ""),
            each.count,
            100.0 * each.count / most,
            (colours.get(each.last_from, 0), each.last_from) if each.last_from else None,
            moment(each.last_at, hub.time),
        )
        for each in hub.errors
    )
