"""A party that seals, replies and opens, for the crash harness: rounds take these in turn.

The releases are those of a sealed job at one organization that plays both sides: columns are sealed
under a key that is written before anything is charged, the stored ciphertext is multiplied, and the
stored reply is opened. What is killed is the shipped scheme, key store, mechanisms and gate.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from colonnade.bench.crash.party import CAP, Answer, At, Send, key_of, request_of
from colonnade.core.arrays import IntArray
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.linear.ball import BALL
from colonnade.methods.sealed import charges
from colonnade.methods.sealed.packing import SEED_BYTES, Layout, pack, unpack
from colonnade.methods.sealed.ring import DEGREE, seal_ring
from colonnade.methods.sealed.rows import RowScale
from colonnade.methods.sealed.scheme import (
    Ciphertexts,
    KeyContext,
    Multipliers,
    SecretKey,
    multiplied,
    opened,
    uncovered,
)
from colonnade.party.methods.sealed_keys import FileKeys
from colonnade.privacy.sampling import OsNoise

_ROWS: IntArray = np.arange(16, dtype=np.int64).reshape(2, 8)
_LAYOUT = Layout(8, 2)
_SCALE = RowScale(8, 8, 2, BALL, 60)
_PRODUCT = charges.Product(_SCALE, replace(_SCALE, columns=1), _LAYOUT)
_SIGMA2 = 1 << 32
_REPLY, _OPENING = _PRODUCT.reply(_SIGMA2), _PRODUCT.opening(_SIGMA2)
KINDS = ("seal", "reply", "open")


def cost_of(round_: int) -> int:
    """Return the price of a round's release: that of a ciphertext is 0."""
    return (0, _REPLY.cost, _OPENING.cost)[round_ % len(KINDS)]


def sealed_answer(folder: Path) -> Answer:
    """Return how a party answers whose keys are in ``folder``."""
    keys = FileKeys(folder)
    ring = seal_ring()  # loaded before any process is forked

    def answer(ledger: Ledger, key: ReleaseKey, request: bytes, at: At, send: Send) -> None:
        if key.job not in ledger.state.left:  # what costs nothing needs a job that was admitted
            ledger.admit(key.job, units=CAP // 2)
        gate, first = Gate(ledger, OsNoise(), at=at), key.round - key.round % len(KINDS)
        context = KeyContext(ledger.opened.ledger_id, "crash", f"seal.{first}")
        secret = keys.load(context)
        if secret is None:
            secret = SecretKey.draw(gate.noise)
            keys.save(context, secret)
            at("key written")
        step = KINDS[key.round % len(KINDS)]
        if step == "seal":
            made = _seal(gate, key, request, secret, context)
        else:
            body = before(ledger, key.round - 1, at)
            if step == "reply":
                made = _reply(gate, key, request, secret, context, body)
            else:
                made = _open(gate, key, request, secret, body)
        send(made)

    def before(ledger: Ledger, round_: int, at: At) -> bytes:
        """Return what the round builds on; a kill may have left it to be made."""
        if (earlier := ledger.stored(key_of(round_))) is None:
            answer(ledger, key_of(round_), request_of(round_), at, lambda _: None)
            return before(ledger, round_, at)
        return earlier.body

    def _seal(
        gate: Gate, key: ReleaseKey, request: bytes, secret: SecretKey, context: KeyContext
    ) -> bytes:
        (messages,) = _LAYOUT.messages(_ROWS)
        mechanism = charges.ciphertext(len(messages), key=secret.name(context), peers=["crash"])
        return gate.release(
            key,
            request,
            mechanism,
            lambda: uncovered(secret, context, messages, first=0, ring=ring),
            encode=lambda value: secret.seed + pack(value),
        ).body

    def _reply(
        gate: Gate,
        key: ReleaseKey,
        request: bytes,
        secret: SecretKey,
        context: KeyContext,
        body: bytes,
    ) -> bytes:
        def compute() -> IntArray:
            bodies = unpack(body[SEED_BYTES:], (1 + _LAYOUT.chunks) * DEGREE).reshape(-1, DEGREE)
            sealed = [Ciphertexts(secret.seed, context, bodies)]
            steps = Multipliers(lambda: _ROWS[:1], ring)
            return multiplied(sealed, _LAYOUT, steps, noise=gate.noise, ring=ring)

        return gate.release(key, request, _REPLY, compute, encode=pack).body

    def _open(gate: Gate, key: ReleaseKey, request: bytes, secret: SecretKey, body: bytes) -> bytes:
        def compute() -> IntArray:
            count = _LAYOUT.replies(1) * (_LAYOUT.slots + DEGREE)
            replies = unpack(body, count).reshape(-1, _LAYOUT.slots + DEGREE)
            return opened([secret], _LAYOUT, replies).reshape(-1)

        return gate.release(key, request, _OPENING, compute).body

    return answer
