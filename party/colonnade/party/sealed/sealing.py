"""Seal a party's columns, a body of polynomials at a time, and sign what goes to peers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger, Released
from colonnade.methods.base import Part
from colonnade.methods.sealed import charges
from colonnade.methods.sealed.packing import pack
from colonnade.methods.sealed.ring import Ring
from colonnade.methods.sealed.scheme import KeyContext, SecretKey, uncovered
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.methods.sealed.tasks import statement
from colonnade.party.methods.sealed_keys import KeyStore
from colonnade.party.methods.sealed_peers import context_of


@dataclass(frozen=True, slots=True)
class Sealing:
    """Seals columns of one party in one job, under keys that are written before."""

    spec: SealedSpec
    job: str
    part: Part
    gate: Gate
    ledger: Ledger
    keys: KeyStore
    ring: Ring

    def bodies(
        self,
        round_: int,
        base: str,
        kinds: list[str],
        *,
        request: bytes,
        steps: Callable[[], IntArray],
    ) -> list[Released]:
        """Release sealed columns; ``steps`` are asked for when the first body needs them."""
        layout = self.spec.layout(base, self.part)
        messages = cache(lambda: layout.messages(steps()))
        released = []
        for kind, body in zip(kinds, layout.bodies() if kinds else (), strict=True):
            key = ReleaseKey(self.job, round_, kind)
            if self.ledger.has(key):  # replayed, if it was the same request; its key may be gone
                mechanism = self.ledger.state.charges[key].mechanism
                released.append(self.gate.release(key, request, mechanism, _never))
            else:
                released.append(self._body(key, request, base, body, messages))
        return released

    def _body(
        self,
        key: ReleaseKey,
        request: bytes,
        base: str,
        body: tuple[int, int, int],
        messages: Callable[[], IntArray],
    ) -> Released:
        group, first, last = body
        context = context_of(self.job, self.part, base, group)
        secret = self._key(key, context)
        mechanism = charges.ciphertext(
            last - first, key=secret.name(context), peers=self.spec.peers(self.part)
        )

        def compute() -> IntArray:
            mine = messages()[group, first:last]
            return uncovered(secret, context, mine, first=first, ring=self.ring)

        encode = partial(self.signed, key, secret.seed)
        return self.gate.release(key, request, mechanism, compute, encode=encode)

    def _key(self, release: ReleaseKey, context: KeyContext) -> SecretKey:
        """Return the key of sealed columns, made and written before anything is sealed with it."""
        if (found := self.keys.load(context)) is not None:
            return found
        if release in self.ledger.state.charges:
            # Charged, then killed, then without its key: the entry names another than a new one.
            raise BadMessage("the key of this exchange was erased; submit a new job")
        made = SecretKey.draw(self.gate.noise)
        self.keys.save(context, made)
        return made

    def opening_keys(self, base: str) -> list[SecretKey]:
        """Return the keys under which columns were sealed, one a group."""
        groups = range(self.spec.layout(base, self.part).groups)
        found = [self.keys.load(context_of(self.job, self.part, base, each)) for each in groups]
        keys = [key for key in found if key is not None]
        if len(keys) != len(groups):
            raise BadMessage("the key of this exchange was erased; submit a new job")
        return keys

    def signed(self, key: ReleaseKey, head: bytes, value: IntArray, *, answers: str = "") -> bytes:
        """Return packed coefficients after ``head``, and this ledger's signature on all of it."""
        payload = head + pack(value)
        said = statement(
            job=key.job,
            round_=key.round,
            party=self.part.party,
            kind=key.kind,
            payload=payload,
            answers=answers,
        )
        return payload + self.ledger.sign(said)


def _never() -> IntArray:
    """Stand for what is not computed: the release is stored."""
    raise ValueError("a stored release is replayed")
