"""What the open attempt at a secure sum has brought, and the sum that its shares open."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.masking.cohort import (
    SEALED_BYTES,
    Attempt,
    Survivors,
    by_place,
    masks_digest,
    round_digest,
    unmask,
)
from colonnade.masking.errors import BadPart
from colonnade.masking.masks import words_from_bytes
from colonnade.masking.rules import CohortRules
from colonnade.masking.schedule import Announcement
from colonnade.masking.shamir import SHARE_BYTES
from colonnade.methods.admm.secure.exchanges import Exchange, ExchangeTask
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.server.methods.admm.job import FederatedAdmm
from colonnade.server.methods.admm.state import AdmmState
from colonnade.server.methods.base import MaskedAnswer
from colonnade.wire.cohort import ClientAnswers


@dataclass(frozen=True, slots=True, eq=False)
class SumState:
    """The state before the answers of an exchange; messages are by the places of maskers."""

    admm: AdmmState
    exchange: Exchange = Exchange.ANNOUNCE
    announced: Mapping[int, bytes] = field(default_factory=dict)
    sealed: Mapping[int, bytes] = field(default_factory=dict)
    masked: Mapping[int, MaskedAnswer] = field(default_factory=dict)
    confirmed: Mapping[int, bytes] = field(default_factory=dict)


def task_for(whole: FederatedAdmm, state: SumState, place: int, asked: ClientTasks) -> ExchangeTask:
    """Return what a masker is told and asked; ``asked`` is of its clients."""
    exchange, task = state.exchange, ExchangeTask(state.admm.round)
    if exchange >= Exchange.SHARE:
        task = replace(task, announced=state.announced)
    if exchange >= Exchange.MASK:
        sealed = {
            sender: by_place(raw, [place], SEALED_BYTES)[place]
            for sender, raw in state.sealed.items()
            if sender != place
        }
        task = replace(task, sealed=sealed)
    if exchange is Exchange.MASK:
        first = whole.first(whole.method.parts[place].party)
        task = replace(task, asked=asked.shifted(-first))
    if exchange >= Exchange.CONFIRM:
        task = replace(task, masked=tuple(sorted(state.masked)))
    if exchange is Exchange.OPEN:
        task = replace(task, confirmed=state.confirmed)
    return task


def opened_sum(
    whole: FederatedAdmm, rules: CohortRules, state: SumState, bodies: Mapping[int, bytes]
) -> IntArray:
    """Return the sum over the survivors; `BadPart` if the shares in ``bodies`` open none.

    A share that was not dealt gives uniform words, which no sum of clipped answers is: that is
    noticed, and the attempt opens nothing.
    """
    shared = sorted(state.sealed)
    announced = {place: Announcement.from_bytes(raw) for place, raw in state.announced.items()}
    run, at = whole.method.run(whole.job_id), Attempt(state.admm.round, state.admm.drawing)
    digest = masks_digest(round_digest(run, announced, at=at), shared)
    survivors = Survivors.of(rules, digest, shared, sorted(state.masked))
    parts = {place: words_from_bytes(each.body) for place, each in state.masked.items()}
    shares = {place: by_place(raw, shared, SHARE_BYTES) for place, raw in bodies.items()}
    total = unmask(rules, run, survivors, announced, parts, shares).view(np.int64)
    if np.abs(total.astype(np.float64)).max() > _most(whole.method.spec, state):
        raise BadPart("what opened is no sum of clipped answers: somebody sent other shares")
    return total


def _most(spec: AdmmSpec, state: SumState) -> float:
    """Return what no coordinate of a sum exceeds, but once in 10**30 rounds."""
    release = spec.release(state.admm.round)
    clients = sum(len(each.clients) for each in state.masked.values())
    noise = math.sqrt(release.mechanism.sigma2 * len(state.masked))
    return clients * float(release.radius) + 12.0 * noise + 1.0


def answers_of(whole: FederatedAdmm, state: SumState, total: IntArray) -> ClientAnswers:
    """Return a sum as answers of its clients: the first host's has it all, others have zeros.

    Every survivor has bytes, so that noises are counted.
    """
    clients, bodies = list[int](), list[bytes]()
    for place, each in sorted(state.masked.items()):
        first = whole.first(whole.method.parts[place].party)
        clients += [first + client for client in sorted(each.clients)]
        mine = total if not bodies else np.zeros_like(total)
        bodies += [mine.astype("<i8").tobytes()] + [b""] * (len(each.clients) - 1)
    rounds = np.full(len(clients), state.admm.drawing, np.int64)
    declined = declined_by(whole, state.masked)
    return ClientAnswers(np.array(clients, np.int64), rounds, bodies, declined)


def declined_by(whole: FederatedAdmm, masked: Mapping[int, MaskedAnswer]) -> IntArray:
    """Return who will answer nothing more, as the job numbers them."""
    found = [
        whole.first(whole.method.parts[place].party) + client
        for place, each in masked.items()
        for client in each.declined
    ]
    return np.array(sorted(found), np.int64)


def clients_at(whole: FederatedAdmm, place: int, clients: IntArray) -> IntArray:
    """Return which of ``clients`` live at a place."""
    part = whole.method.parts[place]
    first = whole.first(part.party)
    return clients[(clients >= first) & (clients < first + part.clients)]


def may_have_paid(
    whole: FederatedAdmm, state: SumState, masked: Mapping[int, MaskedAnswer]
) -> IntArray:
    """Return clients of masked sums, and all asked of hosts whose sum the coordinator lacks."""
    if state.exchange < Exchange.MASK:
        return np.empty(0, np.int64)
    asked, found = whole.solver.sampled(state.admm), list[int]()
    for place in sorted(state.sealed):
        first = whole.first(whole.method.parts[place].party)
        if place in masked and masked[place].body:
            found += [first + client for client in masked[place].clients]
        else:
            found += clients_at(whole, place, asked).tolist()
    return np.array(found, np.int64)
