"""A host's side of federated ADMM where only the sum over all hosts is opened (`masking.cohort`).

Privacy: holds if the named peers follow the protocol. Peers are those whose ledger keys this
party's policy pins (`party.sealed.cohort`), in the order of the job's members; the coordinator
enrols nobody. Everything passes the gate: what costs nothing is stored before it leaves, so that
nothing is said twice in two ways, and the masked sum is charged to every client in it, opened or
not. A host keeps no state but its ledger, and draws the noise for the masked sum alone, so no
noise of an earlier round enters a later one.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage, PolicyRefused
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.ledger import Released
from colonnade.masking.cohort import Attempt
from colonnade.masking.errors import BadPart
from colonnade.masking.rules import CohortRules
from colonnade.masking.schedule import Announcement, Run
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.methods.admm.secure.exchanges import (
    FREE_KINDS,
    Exchange,
    ExchangeTask,
    exchange_from_bytes,
    exchange_of,
)
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.party.methods.admm import AdmmHost, admm_host, is_away
from colonnade.party.methods.base import JobContext
from colonnade.party.methods.cohort_sum import CohortMember
from colonnade.privacy.distributed import GaussianShare
from colonnade.wire.codec import Answer, Releases
from colonnade.wire.cohort import Replies


@dataclass(frozen=True, slots=True)
class CohortAnswers:
    """The side of a host whose sums are masked."""

    method: AdmmJobSpec
    rules: CohortRules
    run: Run
    host: AdmmHost
    context: JobContext

    @classmethod
    def of(cls, method: AdmmJobSpec, rules: CohortRules, context: JobContext) -> "CohortAnswers":
        """Build from context."""
        own = bytes.fromhex(context.ledger.opened.public_key)
        pinned = {**context.pins, context.party: own}
        for part, key in zip(method.parts, method.keys, strict=True):
            if pinned.get(part.party) != key:
                raise PolicyRefused(f"the job names a ledger key of {part.party} not pinned here")
        return cls(method, rules, method.run(context.job_id), admm_host(method, context), context)

    def answer(self, round_: int, body: bytes) -> Answer:
        """Answer an exchange."""
        number, exchange = exchange_of(round_)
        if number > self.method.max_attempts:
            raise BadMessage(f"the job has {self.method.max_attempts} attempts at its rounds")
        spec, accounts = self.host.spec, self.host.accounts
        task = exchange_from_bytes(body, n_clients=len(accounts), point_size=spec.point_size)
        if not 1 <= task.round <= spec.rounds:
            raise BadMessage(f"a task is for no round of the job's {spec.rounds}")
        named = {*task.announced, *task.sealed, *task.masked, *task.confirmed}
        if any(place >= self.rules.maskers for place in named):
            raise BadMessage("a task names a masker that is not on the roster")
        at = Attempt(task.round, number)
        if self._drops_out(at, exchange):
            raise BadPart("this host dropped out, to try what then happens")
        member = self._member()
        if exchange is Exchange.MASK:
            return self._mask(member, at, task)
        announced = {place: Announcement.from_bytes(each) for place, each in task.announced.items()}
        match exchange:
            case Exchange.ANNOUNCE:
                member.announce(at)
            case Exchange.SHARE:
                member.share(at, announced)
            case Exchange.CONFIRM:
                shared = sorted([*task.sealed, member.place])
                member.confirm(at, announced, shared, task.masked)
            case _:
                member.open(at, announced, task.sealed, task.masked, task.confirmed)
        key = ReleaseKey(self.context.job_id, number, FREE_KINDS[exchange], member.account)
        if (released := self.context.ledger.stored(key)) is None:
            raise BadPart("the message was not stored")
        return Releases([released])

    def _member(self) -> CohortMember:
        """Return this party as a masker.

        What is free is kept under the account that was admitted first, as the ledger has it: a
        client that is admitted later must not give every message a second key.
        """
        context = self.context
        first = next(iter(context.ledger.state.left.get(context.job_id, ())), None)
        if first is None:
            raise PolicyRefused("no client here was admitted to the job")
        place = [peer.party for peer in self.run.peers].index(context.party)
        table = hashlib.sha256(self.host.version).digest()
        return CohortMember(
            self.rules,
            self.run,
            place,
            context.job_id,
            table,
            context.gate,
            context.ledger,
            first,
        )

    def _mask(self, member: CohortMember, at: Attempt, task: ExchangeTask) -> Replies:
        """Release the masked sum over the clients that are asked, here and able to pay."""
        if task.asked is None or set(task.asked.rounds.tolist()) != {at.number}:
            raise BadMessage("a task asks for no sum, or for one of another attempt")
        self.host.check(task.asked)
        release = self.host.spec.release(task.round)
        if not isinstance(release.mechanism, GaussianShare):
            raise TypeError("a secure sum has its noise in parts")
        asked, outside = self._present(task.asked)
        if not len(asked):
            raise BadPart("none of the clients that are asked is here")
        accounts = [self.host.accounts[client] for client in asked.clients.tolist()]
        row_of = {account: row for row, account in enumerate(accounts)}

        def compute(paid: Sequence[str]) -> IntArray:
            return self.host.sum(asked, [row_of[account] for account in paid])

        replies = member.mask(
            at,
            {place: Announcement.from_bytes(each) for place, each in task.announced.items()},
            task.sealed,
            accounts,
            release.mechanism,
            compute,
            request=b"".join(asked.requests(self.host.version)),
            kind=release.kind,
        )
        paired = list(zip(asked.clients.tolist(), replies, strict=True))
        released = {client: each for client, each in paired if isinstance(each, Released)}
        declined = [client for client, each in paired if not isinstance(each, Released)]
        return Replies(release.kind, released, [*outside, *declined])

    def _present(self, asked: ClientTasks) -> tuple[ClientTasks, list[int]]:
        """Return what is asked of clients that are here, and who was never admitted."""
        admitted, job = self.context.ledger.state.admitted, self.context.job_id
        clients = asked.clients.tolist()
        names = [self.host.accounts[client] for client in clients]
        outside = [c for c, name in zip(clients, names, strict=True) if (job, name) not in admitted]
        number, chance = int(asked.rounds[0]), self.context.drop_out
        there = [
            row
            for row, (client, name) in enumerate(zip(clients, names, strict=True))
            if client not in outside and not is_away(job, number, name, chance)
        ]
        return asked.only(np.array(there, np.int64)), outside

    def _drops_out(self, at: Attempt, exchange: Exchange) -> bool:
        """Return whether the whole host drops out of an attempt, to try what then happens."""
        context, chance = self.context, self.context.drop_out
        if not is_away(context.job_id, at.number, f"host {context.party}", chance):
            return False
        return exchange >= Exchange.MASK  # after it has shared: the hardest to do without
