"""A job's report: public numbers and functions of releases, nothing else.

The shape is described in `colonnade.report`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from colonnade.core.errors import BadInput
from colonnade.data.model import LinearModel
from colonnade.methods.base import Member, Unit
from colonnade.methods.evaluation.method import EVALUATION
from colonnade.methods.evaluation.spec import EvaluationSpec
from colonnade.methods.registry import method_of
from colonnade.privacy.accounting import epsilon_of, rho_from_units
from colonnade.privacy.disclosure import PREDICTION
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.report import state_promise
from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.engine.metering import CONTROL
from colonnade.server.engine.progress import run_of
from colonnade.server.engine.rounds import Run, states_of
from colonnade.server.methods.base import Findings
from colonnade.server.methods.deviations import per_deviation
from colonnade.server.methods.evaluation import EvaluationJob
from colonnade.server.methods.registry import side_of
from colonnade.server.store.base import PartyRow, State, Store, UplinkRow
from colonnade.server.uplink import uplink_of
from colonnade.v1 import federation_pb2, release_pb2
from colonnade.wire.notes import bounds_note, unused_note

Report = dict[str, Any]


def report_of(engine: Coordinator, store: Store, run: Run) -> Report:
    """Return the report of a job, ended or not."""
    row, job = run.row, run.job
    ended = row.ended_at or None
    private = _private(engine, run)
    model, scaled_by = None, None
    if run.state is not None and method_of(job.kind).model:
        fitted = run.algorithm.model(run.state)
        model = replace(fitted, private=private).to_object()
        known = side_of(job.kind).deviations(run.algorithm, run.state)
        scaled_by = per_deviation(known, fitted)
    found = _findings(store, run)
    section = method_of(job.kind).section
    return {
        "format": "colonnade report",
        "version": 1,
        "job_id": row.job_id,
        "name": job.name,
        "purpose": job.purpose,
        "requested_by": job.requested_by,
        "method": job.kind,
        "state": row.state.value,
        "reason": row.reason,
        "private": private,
        "submitted_at": _iso(row.submitted_at),
        "ended_at": None if ended is None else _iso(ended),
        "seconds": 0.0 if ended is None else ended - row.submitted_at,
        ("n_rows" if job.unit is Unit.RECORD else "n_clients"): job.population,
        "loss": job.method.loss.value,
        "labels": job.method.labels.value,
        "rounds": {"planned": run.rounds, "done": run.rounds_done},
        "parameters": dict(run.algorithm.parameters()),
        "privacy": _privacy(engine, run, store.uplink(row.job_id), found),
        "uplink": uplink_of(run, store.uplink(row.job_id), found),
        "model": model,
        "per_deviation": scaled_by,
        "path": _path(found.models),
        "unused": _unused(run),
        "quality": None,
        "contribution": found.contribution,
        "evaluation": _evaluation(engine, store, run),
        **({section: found.section} if section and found.section is not None else {}),
        **found.also,
    }


def _evaluation(engine: Coordinator, store: Store, run: Run) -> Report | None:
    """Return what the newest evaluation of the model, or this job itself, released; all cost."""
    if run.job.kind == EVALUATION.kind:
        return _evaluated(run)
    newest, units = None, 0
    for row in store.jobs():  # newest first
        if bytes.fromhex(run.row.job_id) not in row.spec:
            continue
        other = run_of(engine, store, row)
        spec = other.job.method
        if isinstance(spec, EvaluationSpec) and spec.training == run.row.job_id:
            units += other.spent(spec.part.party)
            newest = newest or (_evaluated(other) if row.state is State.FINISHED else None)
    return newest and newest | {"spent": _amount(units, run.job.delta)}


def _evaluated(run: Run) -> Report | None:
    if run.state is None or not isinstance(run.algorithm, EvaluationJob):
        return None
    found = run.algorithm.result(run.state)
    (member,) = run.job.members
    return found and found | {"epsilon": _amount(run.spent(member.party), run.job.delta)["epsilon"]}


def _unused(run: Run) -> list[Report]:
    """Return the parties that paid for a finished model which uses none of their features."""
    if run.row.state is not State.FINISHED:
        return []
    return [
        {
            "party": party,
            "spent": _amount(run.spent(party), run.job.delta),
            "note": unused_note(party, run.spent(party)),
        }
        for party, used in run.features_used().items()
        if not used and run.spent(party)
    ]


def _amount(units: int, delta: float) -> Report:
    rho = rho_from_units(units)
    return {"units": units, "rho": rho, "epsilon": epsilon_of(rho, delta)}


def _findings(store: Store, run: Run) -> Findings:
    """Return what a job's rounds led to, if it has begun."""
    if run.state is None:
        return Findings()
    states = states_of(run.algorithm, store.iterates(run.row.job_id))
    is_open = run.opened and not run.row.state.ended
    return side_of(run.job.kind).findings(run.algorithm, states, is_open=is_open)


def solve_again(
    engine: Coordinator, run: Run, penalty: str, numbers: Mapping[str, float]
) -> Report:
    """Return the model of a finished job under another penalty: a function of releases."""
    if (solve := side_of(run.job.kind).solve) is None:
        raise BadInput(f"a job of kind {run.job.kind} has one solution; moments have others")
    if run.state is None:
        raise BadInput("the job has not begun; solve it when it is finished")
    model = solve(run.algorithm, run.state, penalty, numbers)
    return replace(model, private=_private(engine, run)).to_object()


def _private(engine: Coordinator, run: Run) -> bool:
    return not any(_offer(engine, member.party).simulation for member in run.job.members)


def _privacy(
    engine: Coordinator, run: Run, rows: Sequence[UplinkRow], findings: Findings
) -> Report:
    job, delta, account = run.job, run.job.delta, method_of(run.job.kind).account

    def amount(units: int) -> Report:
        return _amount(units, delta)

    parties, by_round = [], dict[int, dict[str, int]]()
    bounds = {member.party: _bounds_units(engine, member) for member in job.members}
    for member in job.members:
        party, releases = member.party, run.counts[member.party].releases
        offer = _offer(engine, party)
        parties.append(
            {
                "party": party,
                **_costs(job.method.max_units(party), run.spent(party), bounds[party], delta),
                "cap": amount(offer.cap_units) if offer.cap_units and not account else None,
                "ledger_spent": amount(_ledger_spent(engine.parties[party], run)),
                "by_kind": [
                    {
                        "kind": kind,
                        "releases": count,
                        "spent": amount(run.spent(party, kind)),
                    }
                    for kind, count in sorted(releases.items())
                ],
            }
        )
    for row in rows:
        if row.kind != CONTROL and job.unit is Unit.RECORD:  # what clients pay does not add up
            spent = by_round.setdefault(row.round, {})
            spent[row.party] = spent.get(row.party, 0) + run.cost(row)
    total = job.unit.joint
    most = total(job.method.max_units(member.party) for member in job.members)
    label = job.label_parties()
    label_most = total(job.method.max_units(party) for party in label)
    found = {
        "delta": delta,
        "statement": "",
        "bounds_note": bounds_note(bounds),
        "joint": _costs(
            most,
            total(run.spent(member.party) for member in job.members),
            _sum(bounds.values()),
            delta,
        ),
        "label": {
            **_costs(
                label_most,
                total(run.spent(party) for party in label),
                _sum(bounds[party] for party in label),
                delta,
            ),
            "who": "every party" if job.labels_shared else ", ".join(label),
        },
        "parties": parties,
        "by_round": [{"round": number, "spent": by_round[number]} for number in sorted(by_round)],
    }
    promise = findings.promise or partial(state_promise, unit=job.unit)
    return found | {"statement": findings.statement or promise(found)}


def _offer(engine: Coordinator, party: str) -> federation_pb2.Offer:
    return federation_pb2.Offer.FromString(engine.parties[party].offer)


def _bounds_units(engine: Coordinator, member: Member) -> int | None:
    """Return what a party paid for bounds of the job's table; None if it has another one now."""
    if not member.features:
        return 0
    offer = _offer(engine, member.party)
    return offer.bounds_units if offer.dataset == member.dataset else None


def _sum(units: Iterable[int | None]) -> int | None:
    """Return a sum, or None if a part of it is not known."""
    known = list(units)
    return None if None in known else sum(each or 0 for each in known)


def _costs(most: int, spent: int, bounds: int | None, delta: float) -> Report:
    """Return what a job may cost and did, what bounds cost before it, and both together."""
    total = None
    if bounds is not None:
        total = {"max": _amount(most + bounds, delta), "spent": _amount(spent + bounds, delta)}
    return {
        "max": _amount(most, delta),
        "spent": _amount(spent, delta),
        "bounds": None if bounds is None else _amount(bounds, delta),
        "total": total,
    }


def _ledger_spent(row: PartyRow, run: Run) -> int:
    """Return what a party's ledger has spent in all, by its own newest word.

    Of a party of clients, what one of them is known to have spent at least: the newest word is that
    of one account, and another one may have paid more in this job.
    """
    offer = federation_pb2.Offer.FromString(row.offer)
    newest = release_pb2.Release.FromString(row.latest)
    if method_of(run.job.kind).account:  # its own spending is what this coordinator has seen
        return run.spent(row.name)
    told = 0 if newest.key.account in (MEMBERSHIP, PREDICTION) else newest.receipt.spent_units
    return max(offer.spent_units, told, run.spent(row.name))


def _path(models: Iterable[tuple[int, LinearModel]]) -> list[Report]:
    """Return the coefficients after each round, in scaled units."""
    path = []
    for done, model in models:
        coef: dict[str, list[float]] = {}
        for feature in model.features:
            coef.setdefault(feature.party, []).append(feature.coef_scaled)
        path.append({"round": done, "coef": coef, "intercept": model.intercept_scaled})
    return path


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
