"""A job's report: public numbers and functions of releases, nothing else.

The shape is described in `colonnade.report`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np

from colonnade.core.errors import BadInput
from colonnade.data.model import LinearModel
from colonnade.methods.job import Member
from colonnade.privacy.accounting import epsilon_of, rho_from_units
from colonnade.report import state_promise
from colonnade.report.schema import Privacy
from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.engine.rounds import CONTROL, Run, states_of
from colonnade.server.methods.admm.summary import (
    History,
    clients_of,
    history_of,
    statement_of,
    uplink_by_client,
)
from colonnade.server.methods.deviations import per_deviation
from colonnade.server.methods.moments.job import VerticalMoments
from colonnade.server.methods.moments.solutions import Wanted, moments_summary, solved
from colonnade.server.store.base import PartyRow, State, Store, UplinkRow
from colonnade.v1 import federation_pb2, release_pb2
from colonnade.wire.notes import bounds_note, unused_note

Report = dict[str, Any]


def report_of(engine: Coordinator, store: Store, run: Run) -> Report:
    """Return the report of a job, ended or not."""
    row, job = run.row, run.job
    ended = row.ended_at or None
    private = _private(engine, run)
    model, scaled_by = None, None
    if run.state is not None:
        fitted = run.algorithm.model(run.state)
        model = replace(fitted, private=private).to_object()
        scaled_by = per_deviation(run.algorithm, run.state, fitted)
    history = _history(store, run)
    return {
        "format": "colonnade report",
        "version": 1,
        "job_id": row.job_id,
        "name": job.name,
        "method": job.kind,
        "state": row.state.value,
        "reason": row.reason,
        "private": private,
        "submitted_at": _iso(row.submitted_at),
        "ended_at": None if ended is None else _iso(ended),
        "seconds": 0.0 if ended is None else ended - row.submitted_at,
        ("n_rows" if run.clients is None else "n_clients"): job.n_rows,
        "loss": job.method.loss.value,
        "labels": job.method.labels.value,
        "rounds": {"planned": job.rounds, "done": run.rounds_done},
        "parameters": dict(run.algorithm.parameters()),
        "privacy": _privacy(engine, run, store.uplink(row.job_id)),
        "uplink": _uplink(run, store.uplink(row.job_id), history),
        "model": model,
        "per_deviation": scaled_by,
        "path": _path(_models(store, run, history)),
        "unused": _unused(run),
        "quality": None,
        **_extras(run, history),
    }


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


def _history(store: Store, run: Run) -> History | None:
    """Return a job over clients in its rounds, if it has begun."""
    if run.clients is None or run.state is None:
        return None
    states = states_of(run.algorithm, store.iterates(run.row.job_id))
    return history_of(run.clients, states, is_open=run.opened and not run.row.state.ended)


def _extras(run: Run, history: History | None) -> Report:
    """Return what only some methods can say."""
    if run.clients is not None and history is not None:
        return {"clients": clients_of(run.clients, history)}
    if run.state is None or not isinstance(run.algorithm, VerticalMoments):
        return {}
    found = moments_summary(run.algorithm.solver, run.state)
    return {} if found is None else {"moments": found}


def solve_again(
    engine: Coordinator, run: Run, penalty: str, numbers: Mapping[str, float]
) -> Report:
    """Return the model of a finished moments job under another penalty: a function of releases."""
    algorithm = run.algorithm
    if not isinstance(algorithm, VerticalMoments):
        raise BadInput(f"a job of kind {run.job.kind} has one solution; moments have others")
    try:
        wanted = Wanted(penalty, **numbers)
    except ValueError as error:
        raise BadInput(str(error)) from None
    if run.state is None:
        raise BadInput("the job has not begun; solve it when it is finished")
    try:
        state = solved(algorithm.solver, run.state, wanted)
        model = algorithm.model(state)
    except (ValueError, ArithmeticError, IndexError, np.linalg.LinAlgError):
        raise BadInput("there is no solution with these numbers; use larger ones") from None
    return replace(model, private=_private(engine, run)).to_object()


def _private(engine: Coordinator, run: Run) -> bool:
    return not any(_offer(engine, member.party).simulation for member in run.job.members)


def _privacy(engine: Coordinator, run: Run, rows: Sequence[UplinkRow]) -> Report:
    job, delta = run.job, run.job.delta

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
                **_costs(job.max_units(party), run.spent(party), bounds[party], delta),
                "cap": amount(offer.cap_units) if offer.cap_units else None,
                "ledger_spent": amount(_ledger_spent(engine.parties[party], run)),
                "by_kind": [
                    {
                        "kind": kind,
                        "releases": count,
                        # Of a client that answered most often, where there are clients.
                        "spent": amount(
                            run.counts[party].spent[kind]
                            if run.clients is None
                            else run.spent(party)
                        ),
                    }
                    for kind, count in sorted(releases.items())
                ],
            }
        )
    for row in rows:
        if row.kind != CONTROL and run.clients is None:  # what clients pay does not add up
            spent = by_round.setdefault(row.round, {})
            spent[row.party] = spent.get(row.party, 0) + run.cost(row)
    # A person has a row at every party, and a client is at one.
    total: Callable[[Iterable[int]], int] = sum if run.clients is None else max
    most = total(job.max_units(member.party) for member in job.members)
    label = job.label_parties()
    label_most = total(job.max_units(party) for party in label)
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
    if run.clients is not None:
        return found | {"statement": statement_of(run.clients)}
    return found | {"statement": state_promise(cast("Privacy", found))}


def _offer(engine: Coordinator, party: str) -> federation_pb2.Offer:
    return federation_pb2.Offer.FromString(engine.parties[party].offer)


def _bounds_units(engine: Coordinator, member: Member) -> int | None:
    """Return what a party paid for bounds of the job's table; None if it has another one now."""
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
    return max(offer.spent_units, newest.receipt.spent_units, run.spent(row.name))


def _uplink(run: Run, rows: Sequence[UplinkRow], history: History | None) -> Report:
    listed = dict[tuple[int, str, str], Report]()
    for row in rows:
        size = 0 if row.kind == CONTROL else run.algorithm.body_bytes(row.party, row.kind)
        # Several drawings may belong to one round.
        round_ = row.round if history is None else history.round_of.get(row.round, row.round)
        key = {"round": round_, "party": row.party, "kind": row.kind}
        counts = {
            "payload_bytes": row.payload_bytes,
            "predicted_bytes": size * row.messages,
            "wire_bytes": row.wire_bytes,
            "messages": row.messages,
            "retry_bytes": row.retry_bytes,
        }
        known = listed.setdefault((round_, row.party, row.kind), key | dict.fromkeys(counts, 0))
        for name, count in counts.items():
            known[name] += count
    sums = ("payload_bytes", "predicted_bytes", "wire_bytes", "retry_bytes")
    found = {name: sum(row[name] for row in listed.values()) for name in sums}
    if run.clients is not None and history is not None:
        found |= uplink_by_client(run.clients, history.last)
    return {**found, "rows": list(listed.values())}


def _models(store: Store, run: Run, history: History | None) -> Iterator[tuple[int, LinearModel]]:
    """Yield the model after each round; 0 is the start."""
    if history is not None:
        yield from ((point.done, point.model) for point in history.points)
        return
    for row, state in states_of(run.algorithm, store.iterates(run.row.job_id)):
        if row.round:  # the opening moves nothing
            yield row.round - 1, run.algorithm.model(state)


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
