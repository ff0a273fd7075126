"""What is random in shipped code beside noise, drawn in simulations by the name of what it is for.

Secrets of runs and keys follow from party, job and purpose, so that a run with faults draws what
one without draws. What has left is followed by another draw, as real secrets would be: a party that
draws a second time is noticed by its bytes.
"""

import functools
import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from colonnade.ledger import create as ledgers
from colonnade.masking.schedule import RunSecrets
from colonnade.methods.prediction.spec import KEY
from colonnade.methods.sealed.scheme import KeyContext, SecretKey
from colonnade.party.alignment import answers as alignments
from colonnade.party.prediction.answers import PredictionAnswers
from colonnade.party.sealed.sealing import Sealing
from colonnade.privacy.simulation import SeededNoise
from colonnade.server.methods.admm.job import FederatedAdmm
from colonnade.server.methods.admm.state import SEED_BYTES, AdmmState
from colonnade.server.methods.alignment_job import AlignmentJob

Left = Callable[[tuple[str, int, str]], bool]  # whether bytes of such a release have left

# The party that runs, and what it has sent: tasks and what they hand to threads have their own.
RUNNING: ContextVar[tuple[str, Left]] = ContextVar("running")


def seed_of(*what: object) -> int:
    """Return a seed that follows from names."""
    return int.from_bytes(hashlib.sha256(repr(what).encode()).digest()[:8], "big")


def entropy_of(*what: object) -> Callable[[int], bytes]:
    """Return a source of bytes that follow from names."""
    return np.random.default_rng(seed_of(*what)).bytes


def drawn_for(*release: Any) -> tuple[object, ...]:
    """Return the name of a draw of the running party for a release."""
    party, left = RUNNING.get()
    return party, release, left(release)


@contextmanager
def ledger_named(name: str) -> Iterator[None]:
    """Have a new ledger named by its party: a seed must replay."""
    named = SimpleNamespace(token_bytes=entropy_of("ledger", name))
    with patch.object(ledgers, "secrets", named):
        yield


@contextmanager
def draws_by_name() -> Iterator[None]:
    """Have secrets, keys and samples drawn by name."""
    begun, key = PredictionAnswers._begun, Sealing._key  # noqa: SLF001 (to be wrapped)

    def sampled(self: FederatedAdmm) -> AdmmState:
        return self.solver.start(entropy_of("admm", self.job_id)(SEED_BYTES))

    def ordered(self: AlignmentJob) -> Any:
        name = self.spec.salt
        return self.steps.start(SeededNoise(seed_of("rows", name)), entropy_of("order", name))

    def dummies(self: alignments.AlignmentAnswers, counts: Any) -> bytes:
        what = drawn_for(self.job_id, 0, "keys")
        self.folder.save(self.job_id, self.party.start_with(counts, entropy_of(*what)))
        return b""

    def predicting(self: PredictionAnswers) -> RunSecrets:
        made = RunSecrets.draw(entropy_of(*drawn_for(self.job_id, 0, KEY)))
        with patch.object(RunSecrets, "draw", lambda: made):
            return begun(self)

    def sealing(self: Sealing, release: Any, context: KeyContext) -> SecretKey:
        noise = SeededNoise(seed_of(context.tag(), *drawn_for(*release[:3])))
        drawn = functools.partial(SecretKey.draw, noise)
        with patch.object(SecretKey, "draw", lambda _: drawn()):
            return key(self, release, context)

    with ExitStack() as stack:
        for owner, name, made in (
            (FederatedAdmm, "start", sampled),
            (AlignmentJob, "start", ordered),
            (alignments.AlignmentAnswers, "_draw", dummies),
            (PredictionAnswers, "_begun", predicting),
            (Sealing, "_key", sealing),
        ):
            stack.enter_context(patch.object(owner, name, made))
        yield
