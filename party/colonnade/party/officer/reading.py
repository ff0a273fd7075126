"""The jobs in a ledger, as cases for whoever has to decide.

Everything here follows from the specification, the ledger and public numbers; no row is read.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from colonnade.core.errors import BadInput, ColonnadeError
from colonnade.ledger.caps import describe_place
from colonnade.ledger.decisions import ASK, Standing
from colonnade.ledger.state import LedgerState
from colonnade.ledger.storage.snapshot import Snapshot
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.methods.admm.secure.claims import cohort_promise
from colonnade.methods.alignment.claims import PROMISE, learned
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.base import Unit
from colonnade.methods.job import Job
from colonnade.methods.prediction.claims import PROMISE as PREDICTION_PROMISE
from colonnade.methods.prediction.claims import learned as learned_scores
from colonnade.methods.prediction.spec import PredictionSpec
from colonnade.methods.problem import Loss
from colonnade.methods.registry import method_of
from colonnade.methods.sealed.claims import PROMISE as SEALED_PROMISE
from colonnade.methods.sealed.products import peer_bits
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.party.officer.case import CapAt, Case, Leaving, Similar
from colonnade.privacy.accounting import epsilon_of, format_units, rho_from_units
from colonnade.privacy.disclosure import PREDICTION
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.report.text import capital
from colonnade.wire.jobspec import job_from_bytes, question_of

# Jobs that have at least this part of their columns in common are similar.
_SIMILAR = 0.5
# What a cap is of, by the account that pays; the table's has no name.
_ACCOUNTS = {MEMBERSHIP: "alignments", PREDICTION: "predictions"}


def cases(found: Snapshot, *, all_jobs: bool = False) -> list[Case]:
    """Return the jobs that wait for a decision, or all that can be read, oldest first."""
    return list(_cases(found, all_jobs=all_jobs))


def case_of(found: Snapshot, prefix: str) -> Case:
    """Return the one job whose name begins so."""
    matching = [job for job in found.state.docket.proposals if prefix and job.startswith(prefix)]
    if len(matching) != 1:
        many = f"{len(matching)} jobs begin" if matching else "no job begins"
        raise BadInput(f"{many} with {prefix[:64]!r}; list all jobs, and give more of the name")
    if matching[0] not in found.specs:
        raise BadInput("of that job only the digest was kept: it was refused, and large")
    for each in _cases(found, all_jobs=True):
        if each.job == matching[0]:
            return each
    raise BadInput("the specification of that job cannot be read: it was refused as none")


def _cases(found: Snapshot, *, all_jobs: bool) -> Iterator[Case]:
    state, times, jobs = found.state, _times(found.lines), _readable(found.specs)
    for name, proposal in state.docket.proposals.items():
        waits = proposal.entry.approve == ASK and standing_of(state, name) in ("waiting", "held")
        if name in jobs and (all_jobs or waits):
            yield _case(found, name, jobs, times.get(name, 0))


def standing_of(state: LedgerState, job: str) -> str:
    """Return what became of a job at this party, in one word."""
    standing = state.docket.standing(job)
    if standing is Standing.REFUSED:
        return str(standing.value)
    if job in state.closed:
        return "ended" if job in state.scoped.places else "withdrawn"
    if job in state.scoped.places:
        return "running"
    if job in state.docket.declined:
        return "declined"
    return str(standing.value) if state.docket.proposals[job].entry.approve == ASK else "accepted"


def _case(found: Snapshot, name: str, jobs: Mapping[str, Job], since: int) -> Case:
    state, job = found.state, jobs[name]
    proposal, docket = state.docket.proposals[name].entry, state.docket
    party = state.opened.party if state.opened else ""
    member = next((each for each in job.members if each.party == party), None)
    units = job.max_units(party) if member else 0
    return Case(
        job=name,
        name=job.name,
        coordinator=proposal.coordinator,
        requested_by=job.requested_by,
        purpose=job.purpose,
        kind=job.kind,
        method=_method_words(job),
        since=since,
        party=party,
        peers=tuple(each.party for each in job.members if each.party != party),
        columns=member.features if member else (),
        label=job.label if member and member.holds_label else "",
        people=job.population,
        over_clients=job.unit is Unit.CLIENT,
        leaving=_leaving(job, party) if member else (),
        units=units,
        delta=job.delta,
        caps=_caps(found, name, job, units),
        promise=_promise(job, party, units),
        similar=tuple(_similar(found, name, jobs)),
        standing=standing_of(state, name),
        agreed=docket.agreed(name),
        needed=proposal.approvals,
        reason=reason_of(state, name),
    )


def reason_of(state: LedgerState, job: str) -> str:
    """Return why a job was held or refused, by people or by the party itself."""
    found = state.docket.declined.get(job)
    declined = "" if found is None else f"{found.reason} ({found.code})"
    return state.docket.reason(job) or declined


def _leaving(job: Job, party: str) -> tuple[Leaving, ...]:
    spec = job.method
    return tuple(
        Leaving(kind, count, count * spec.body_bytes(party, kind))
        for kind, count in spec.max_releases(party).items()
        if count
    )


def _caps(found: Snapshot, name: str, job: Job, units: int) -> tuple[CapAt, ...]:
    """Return the caps that apply, in units; a job that is admitted is in what is used."""
    state = found.state
    admitted = name in state.scoped.places
    more = 0 if admitted or name in state.closed else units
    account = method_of(job.kind).account
    names = sorted(state.accounts()) if job.unit is Unit.CLIENT and state.accounts() else [account]
    budget = min(map(state.unreserved, names), key=lambda each: each.remaining)
    whose = _ACCOUNTS.get(account, "the table") if names == [account] else "a client"
    caps = [CapAt(whose, budget.cap, budget.spent, budget.spent + more)]
    if (person := found.person) is not None and person.cap is not None and units:
        used = person.spent + person.reserved
        caps.append(
            CapAt(describe_place((person.scope, person.name)), person.cap, used, used + more)
        )
    for place in state.places(name, datetime.now(UTC).strftime("%Y-%m")):
        scoped = state.scoped.budget(place)
        if scoped.cap is not None:
            used = scoped.spent + scoped.reserved
            caps.append(CapAt(describe_place(place), scoped.cap, used, used + more))
    return tuple(caps)


def _method_words(job: Job) -> str:
    rounds = "1 round" if job.rounds == 1 else f"{job.rounds} rounds"
    loss = job.method.loss
    return f"{job.kind}, {rounds}" + ("" if loss is Loss.NONE else f", {loss.value} loss")


def _promise(job: Job, party: str, units: int) -> str:
    if isinstance(job.method, AlignmentJobSpec):
        spec = job.method.alignment
        told_to = learned([spec.mode], spec.noise, extends=spec.extends is not None)
        lines = (f"{capital(who)}: {what}" for who, what in told_to)
        return f"{'. '.join(lines)}. {PROMISE}"
    if isinstance(job.method, PredictionSpec):
        asked = job.method
        scores = learned_scores(asked.receiver, len(asked.parts), asked.middle)
        lines = (f"{capital(who)}: {what}" for who, what in scores)
        return f"{PREDICTION_PROMISE} {'. '.join(lines)}"
    if isinstance(job.method, SealedSpec):
        told = _peers_words(job.method, party, job.delta)
        return f"At most {format_units(units, job.delta)}. {SEALED_PROMISE}{told}"
    if isinstance(job.method, AdmmJobSpec) and job.method.spec.maskers:
        told = cohort_promise(job.method.spec, job.delta)
        return f"At most {format_units(units, job.delta)} for one of your clients. {told}"
    epsilon = epsilon_of(rho_from_units(units), job.delta)
    whom = "one of your clients" if job.unit is Unit.CLIENT else "one of your people"
    share = min(99, math.ceil(100 / (1 + math.exp(-min(epsilon, 50.0)))))
    return (
        f"Even if the coordinator and all other parties work together, what they learn about "
        f"{whom} from this job is bounded by {format_units(units, job.delta)}, with a chance of "
        f"failure of one in {round(1 / job.delta):,}. A guess that was 50 : 50 can become at most "
        f"about {share} : {100 - share}. Not protected: the number of people, names and bounds of "
        "columns, and that this job was asked."
    )


def _peers_words(spec: SealedSpec, party: str, delta: float) -> str:
    """Return what peers of a sealed job read of a party, if it is in the job, at most."""
    if all(each.party != party for each in spec.parts):
        return ""
    told = f" In this job that is {peer_bits(spec, spec.part(party)):,} bits at most."
    if (shield := spec.shield(spec.part(party))) is not None:
        amount = format_units(shield.cost, delta)
        told += f" Your rows are shielded: what such a peer reads has {amount} at most."
    return told


def _similar(found: Snapshot, name: str, jobs: Mapping[str, Job]) -> Iterator[Similar]:
    """Yield earlier jobs that ask the same, or much of the same."""
    state, specs, party = found.state, found.specs, ""
    if state.opened:
        party = state.opened.party
    question, mine = question_of(specs[name]), _columns(jobs[name], party)
    for other, job in jobs.items():
        if other == name:
            break  # in order of time: later ones are not "before"
        theirs = _columns(job, party)
        common = len(mine & theirs) / max(1, len(mine | theirs))
        if question_of(specs[other]) == question:
            how = "the same question"
        elif job.kind == jobs[name].kind == "alignment" or (mine and common >= _SIMILAR):
            same = "same" if job.label == jobs[name].label else "other"
            how = f"{len(mine & theirs)} of the same columns, {same} label"
        else:
            continue
        if job.purpose != jobs[name].purpose:
            how += f", for {job.purpose!r}" if job.purpose else ", for no stated purpose"
        yield Similar(other, job.name, paid_for(state, other), how, standing_of(state, other))


def _columns(job: Job, party: str) -> frozenset[str]:
    return frozenset(
        feature for member in job.members if member.party == party for feature in member.features
    )


def paid_for(state: LedgerState, job: str) -> int:
    """Return what a job has cost the account that paid most for it."""
    paid: dict[str, int] = {}
    for key, charge in state.charges.items():
        if key.job == job:
            paid[key.account] = paid.get(key.account, 0) + charge.units
    return max(paid.values(), default=0)


def _readable(specs: Mapping[str, bytes]) -> dict[str, Job]:
    found = {}
    for name, spec in specs.items():
        try:
            found[name] = job_from_bytes(spec)
        except ColonnadeError:
            continue
    return found


def _times(lines: Sequence[str]) -> dict[str, int]:
    """Return when each job was first proposed."""
    times: dict[str, int] = {}
    for line in lines:
        if '"type":"proposed"' in line:
            entry = json.loads(line)
            times.setdefault(entry["job"], entry["time"])
    return times
