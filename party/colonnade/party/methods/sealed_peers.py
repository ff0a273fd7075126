"""What other parties sealed or replied, checked before anything is charged.

Privacy: a body is used only if it has its exact size, is signed by the key that this party pinned
for its sender, over this job, round and kind, and all its coefficients are below the modulus. ``a``
is expanded here, never received. Everything else is refused for what it says, never for what the
data is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage
from colonnade.ledger.receipts import verify
from colonnade.methods.base import Part
from colonnade.methods.sealed.kinds import LABEL, SEAL, SealedStage, numbered
from colonnade.methods.sealed.packing import SEED_BYTES, SIGNATURE_BYTES, unpack
from colonnade.methods.sealed.ring import DEGREE
from colonnade.methods.sealed.rounds import sealed_kinds
from colonnade.methods.sealed.scheme import Ciphertexts, KeyContext
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.methods.sealed.tasks import Relayed, digest_of, statement

_STAGES = {LABEL: SealedStage.LABEL, SEAL: SealedStage.SEAL}


def context_of(job: str, part: Part, base: str, group: int) -> KeyContext:
    """Return what the key of a group of a party's sealed columns serves for."""
    return KeyContext(job, part.party, numbered(base, group))


@dataclass(frozen=True, slots=True)
class PinnedPeers:
    """The other parties of a job, by the keys that this one pinned."""

    spec: SealedSpec
    job: str
    pins: Mapping[str, bytes]  # public ledger keys

    def sealed_kinds(self, base: str, sealer: Part) -> list[tuple[str, str]]:
        """Return the bodies in which a party seals its columns."""
        return [(sealer.party, kind) for kind in sealed_kinds(self.spec, base, sealer)]

    def take(
        self, relayed: tuple[Relayed, ...], wanted: list[tuple[str, str]]
    ) -> dict[tuple[str, str], bytes]:
        """Return the bodies by party and kind; refuse others than the wanted, in their order."""
        if [(each.party, each.kind) for each in relayed] != wanted:
            raise BadMessage("a task relays other bodies than its round needs")
        return {(each.party, each.kind): each.body for each in relayed}

    def ciphertexts(
        self, bodies: Mapping[tuple[str, str], bytes], base: str, sealer: Part
    ) -> tuple[list[Ciphertexts], str]:
        """Return a party's sealed columns, a value a key, and the digest of their bodies."""
        layout, raw = self.spec.layout(base, sealer), list[bytes]()
        seeds: list[set[bytes]] = [set() for _ in range(layout.groups)]
        tables: list[list[IntArray]] = [[] for _ in range(layout.groups)]
        round_ = self.spec.round_of(_STAGES[base])
        for (party, kind), (group, first, last) in zip(
            self.sealed_kinds(base, sealer), layout.bodies(), strict=True
        ):
            body = bodies[party, kind]
            payload = self._payload(body, party, kind, round_)
            seeds[group].add(payload[:SEED_BYTES])
            tables[group].append(_unpack(payload[SEED_BYTES:], (last - first, DEGREE)))
            raw.append(body)
        if any(len(found) != 1 for found in seeds) or len(set.union(*seeds)) != layout.groups:
            raise BadMessage("sealed columns have one seed a key, each another")
        found = [
            Ciphertexts(
                seed.pop(),
                context_of(self.job, sealer, base, group),
                np.concatenate(tables[group]),
            )
            for group, seed in enumerate(seeds)
        ]
        return found, digest_of(raw)

    def reply(
        self, body: bytes, kind: str, replier: Part, *, round_: int, answers: str
    ) -> IntArray:
        """Return the coefficients of a reply to what this party sealed, whose digest is given."""
        payload = self._payload(body, replier.party, kind, round_, answers)
        product = self.spec.product(kind, replier)
        layout = product.layout
        shape = layout.replies(product.multiplied.columns), layout.slots + DEGREE
        return _unpack(payload, shape)

    def _payload(self, body: bytes, party: str, kind: str, round_: int, answers: str = "") -> bytes:
        """Return a body without its signature, which is checked."""
        size = self.spec.body_bytes(party, kind)
        if len(body) != size:
            raise BadMessage(f"the {kind} of {party!r} has {len(body)} bytes instead of {size}")
        pinned = self.pins.get(party)
        if pinned is None:
            raise BadMessage(f"no ledger key of {party!r} is pinned here")
        payload, signature = body[:-SIGNATURE_BYTES], body[-SIGNATURE_BYTES:]
        said = statement(
            job=self.job, round_=round_, party=party, kind=kind, payload=payload, answers=answers
        )
        if not verify(pinned, signature, said):
            raise BadMessage(f"the {kind} relayed of {party!r} is not signed by its pinned key")
        return payload


def _unpack(payload: bytes, shape: tuple[int, int]) -> IntArray:
    try:
        return unpack(payload, shape[0] * shape[1]).reshape(shape)
    except ValueError as error:
        raise BadMessage(f"a relayed body is no list of coefficients: {error}") from None
