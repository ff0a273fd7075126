"""A party's side of a sealed job: one answer a round, each through the gate.

Privacy: own statistics are as in a moments job. Rows that are sealed or multiplied are scaled into
a ball and then into steps here (`methods.sealed.rows`), whatever the coordinator or a peer sends,
so that the sensitivities of replies and openings are public constants. Noise meets raw coefficients
in the gate (`privacy.ring_noise`). Tasks, ciphertexts and replies are refused, before anything is
charged, for what they say and never for what the data is; the ledger binds an answer to the digests
of all that was relayed with its task.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage, PolicyRefused
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger, Released
from colonnade.methods.base import Part
from colonnade.methods.sealed.codec import task_from_bytes
from colonnade.methods.sealed.kinds import (
    GRAM,
    LABEL,
    MEANS,
    PRODUCTS,
    REPLY,
    SEAL,
    WIDE,
    SealedStage,
    numbered,
    parsed,
)
from colonnade.methods.sealed.packing import Layout
from colonnade.methods.sealed.ring import Ring, seal_ring
from colonnade.methods.sealed.scheme import (
    Ciphertexts,
    Multipliers,
    SecretKey,
    multiplied,
    opened,
)
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.methods.sealed.tasks import SealedTask, check_task, digest_of
from colonnade.party.data.columns import Columns
from colonnade.party.engine.base import Engine
from colonnade.party.engine.local import LOCAL
from colonnade.party.methods.base import JobContext
from colonnade.party.methods.sealed_keys import KeyStore
from colonnade.party.methods.sealed_peers import PinnedPeers
from colonnade.party.sealed.rows import SealedRows
from colonnade.party.sealed.sealing import Sealing
from colonnade.privacy.ring_noise import HOSTILE
from colonnade.wire.codec import Releases


@dataclass(frozen=True, slots=True)
class SealedParty:
    """Answers the tasks of one job."""

    spec: SealedSpec
    job: str
    part: Part
    columns: Columns
    gate: Gate
    ledger: Ledger
    peers: PinnedPeers
    keys: KeyStore
    ring: Ring
    engine: Engine = LOCAL

    def answer(self, task: SealedTask, request: bytes) -> list[Released]:
        """Release what a task asks for; ``request`` binds the ledger to what was received."""
        check_task(self.spec, self.part, task)
        self.rows.own.check()  # a table without what is asked is refused before anything is charged
        request += b"".join(hashlib.sha256(each.body).digest() for each in task.relayed)
        answers: dict[SealedStage, Callable[[SealedTask, bytes], list[Released]]] = {
            SealedStage.MEANS: self._means,
            SealedStage.LABEL: partial(self._tables, statistic=WIDE, sealed=LABEL),
            SealedStage.PRODUCTS: partial(self._multiply, sealed=LABEL, kind=PRODUCTS),
            SealedStage.SCREEN: partial(self._open, sealed=LABEL, replied=PRODUCTS),
            SealedStage.SEAL: partial(self._tables, statistic=GRAM, sealed=SEAL),
            SealedStage.REPLY: partial(self._multiply, sealed=SEAL, kind=REPLY),
            SealedStage.OPEN: partial(self._open, sealed=SEAL, replied=REPLY),
        }
        return answers[self.spec.stages()[task.round]](task, request)

    def end(self) -> None:
        """Erase the job's keys."""
        self.keys.erase(self.job)

    # -- own statistics ---------------------------------------------------------------------------

    def _means(self, task: SealedTask, request: bytes) -> list[Released]:
        """Release sums of the columns in the order of the job, label last, then of squares."""

        def compute() -> IntArray:
            return self.rows.own.sums(label=True)

        return [self._statistic(task, MEANS, request, compute)]

    def _tables(
        self, task: SealedTask, request: bytes, *, statistic: str, sealed: str
    ) -> list[Released]:
        """Release a Gram matrix and seal columns, whichever the round asks for."""
        kinds, released = self.spec.round_kinds(task.round, self.part), []
        if sealed == SEAL:
            self.rows.put_shield(task.projection, self.gate)
        if statistic in kinds:

            def compute() -> IntArray:
                return self.rows.own.gram(task.projection)

            released.append(self._statistic(task, statistic, request, compute))
        bodies = [kind for kind in kinds if parsed(kind)[0] == sealed]
        projection = task.label if sealed == LABEL else task.projection
        steps = partial(self.rows.steps, sealed, projection, self.ledger)
        return [
            *released,
            *self.sealing.bodies(task.round, sealed, bodies, request=request, steps=steps),
        ]

    def _statistic(
        self, task: SealedTask, kind: str, request: bytes, compute: Callable[[], IntArray]
    ) -> Released:
        mechanism, code = self.spec.made(self.part, kind)
        key = ReleaseKey(self.job, task.round, kind)
        return self.gate.release(key, request, mechanism, compute, encode=code.encode)

    # -- products ---------------------------------------------------------------------------------

    def _multiply(
        self, task: SealedTask, request: bytes, *, sealed: str, kind: str
    ) -> list[Released]:
        """Release the products of own columns with what others sealed."""
        kinds = self.spec.round_kinds(task.round, self.part)
        sealers = [self.spec.parts[parsed(each)[1]] for each in kinds]
        wanted = [pair for sealer in sealers for pair in self.peers.sealed_kinds(sealed, sealer)]
        bodies = self.peers.take(task.relayed, wanted)
        # All are checked before anything is charged, the shield included.
        found = [self.peers.ciphertexts(bodies, sealed, sealer) for sealer in sealers]
        if sealed == SEAL:
            self.rows.put_shield(task.projection, self.gate)
        rows = partial(self.rows.steps, kind, task.projection, self.ledger)
        steps = Multipliers(rows, self.ring)
        return [
            self._reply(task, each, request, *taken, steps)
            for each, taken in zip(kinds, found, strict=True)
        ]

    def _reply(
        self,
        task: SealedTask,
        kind: str,
        request: bytes,
        sealed: list[Ciphertexts],
        answers: str,
        steps: Multipliers,
    ) -> Released:
        layout = self.spec.product(kind, self.part).layout

        def compute() -> IntArray:
            return multiplied(sealed, layout, steps, noise=self.gate.noise, ring=self.ring)

        key, mechanism = (
            ReleaseKey(self.job, task.round, kind),
            self.spec.mechanism(kind, self.part),
        )
        encode = partial(self.sealing.signed, key, b"", answers=answers)
        return self.gate.release(key, request, mechanism, compute, encode=encode)

    def _open(
        self, task: SealedTask, request: bytes, *, sealed: str, replied: str
    ) -> list[Released]:
        """Release the products that others replied with, opened."""
        kinds = self.spec.round_kinds(task.round, self.part)
        repliers = [self.spec.parts[parsed(each)[1]] for each in kinds]
        reply_kind = numbered(replied, self.spec.place(self.part.party))
        wanted = [(replier.party, reply_kind) for replier in repliers]
        bodies = self.peers.take(task.relayed, wanted)
        answers = self._sealed_digest(sealed)
        keys = self.sealing.opening_keys(sealed)
        replies = [
            self.peers.reply(
                bodies[replier.party, reply_kind],
                reply_kind,
                replier,
                round_=task.round - 1,
                answers=answers,
            )
            for replier in repliers
        ]
        return [
            self._opening(task, each, request, keys, reply)
            for each, reply in zip(kinds, replies, strict=True)
        ]

    def _opening(
        self, task: SealedTask, kind: str, request: bytes, keys: list[SecretKey], reply: IntArray
    ) -> Released:
        product, code = self.spec.product(kind, self.part), self.spec.opening_code(kind, self.part)
        layout: Layout = product.layout

        def compute() -> IntArray:
            return opened(keys, layout, reply).reshape(-1)

        def encode(noisy: IntArray) -> bytes:
            raw = noisy.reshape(-1, layout.slots)
            return code.encode(layout.products(raw, product.multiplied.columns).reshape(-1))

        key, mechanism = (
            ReleaseKey(self.job, task.round, kind),
            self.spec.mechanism(kind, self.part),
        )
        return self.gate.release(key, request, mechanism, compute, encode=encode)

    def _sealed_digest(self, base: str) -> str:
        """Return the digest of what this party sealed."""
        stage = SealedStage.LABEL if base == LABEL else SealedStage.SEAL
        round_, bodies = self.spec.round_of(stage), []
        for _, kind in self.peers.sealed_kinds(base, self.part):
            stored = self.ledger.stored(ReleaseKey(self.job, round_, kind))
            if stored is None:
                raise BadMessage("a task opens what this party has not sealed")
            bodies.append(stored.body)
        return digest_of(bodies)

    @property
    def rows(self) -> SealedRows:
        """Own rows, as they are sealed or multiplied."""
        return SealedRows(self.spec, self.job, self.part, self.columns, self.engine)

    @property
    def sealing(self) -> Sealing:
        """What seals own columns and signs what goes to peers."""
        return Sealing(self.spec, self.job, self.part, self.gate, self.ledger, self.keys, self.ring)


@dataclass(frozen=True, slots=True)
class SealedAnswers:
    """The side of a sealed job of a party that has pinned its peers' keys."""

    party: SealedParty
    context: JobContext

    @classmethod
    def of(cls, spec: SealedSpec, context: JobContext) -> "SealedAnswers":
        """Build from context; refuse a job with a peer whose key is not pinned."""
        if context.keys is None:
            raise PolicyRefused("this party has nowhere to keep keys of sealed exchanges")
        part = spec.part(context.party)
        for name in spec.peers(part):
            if name not in context.pins:
                raise PolicyRefused(f"no ledger key of {name!r} is pinned in this party's policy")
        if (shield := spec.shield(part)) is not None:
            with context.ledger.lock:
                context.ledger.admit(context.job_id, units=shield.cost, account=HOSTILE)
        party = SealedParty(
            spec=spec,
            job=context.job_id,
            part=part,
            columns=context.columns,
            gate=context.gate,
            ledger=context.ledger,
            peers=PinnedPeers(spec, context.job_id, context.pins),
            keys=context.keys,
            ring=seal_ring(),
            engine=context.engine,
        )
        return cls(party, context)

    def answer(self, round_: int, body: bytes) -> Releases:
        """Release what a task asks for."""
        spec, part = self.party.spec, self.party.part
        task = task_from_bytes(body, round_=round_, n_columns=spec.n_wide(part))
        return Releases(self.party.answer(task, self.context.request(body)))
