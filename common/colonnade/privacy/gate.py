"""The one door: every byte that depends on a party's data leaves through `Gate.release`.

Privacy: the order is the whole point. Charge and force to disk; only then read the data, draw the
noise, store the result and force it to disk; only then hand it out. A retry hands out the stored
bytes again, so it neither costs nor reveals anything. A crash between charge and store draws again
under the same charge, which is sound because nothing had left. No path refunds.
"""

import enum
import hashlib
from collections.abc import Callable

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import NotPrivate
from colonnade.privacy.entries import ReleaseKey
from colonnade.privacy.ledger import Ledger, Released
from colonnade.privacy.mechanisms import Mechanism
from colonnade.privacy.sampling import NoiseSource, OsNoise


class Step(enum.Enum):
    """Places where the crash harness may end the process."""

    ASKED = "asked"
    CHARGED = "charged"
    COMPUTED = "computed"
    DRAWN = "drawn"
    STORED = "stored"


def int64_bytes(value: IntArray) -> bytes:
    """Encode integers in eight little-endian bytes each: the length says nothing of the values."""
    return value.astype("<i8").tobytes()


def _go_on(step: Step) -> None:
    """Do nothing: the harness passes something else."""


class Gate:
    """Releases one thing at a time from one ledger with one source of noise."""

    def __init__(
        self, ledger: Ledger, noise: NoiseSource, *, at: Callable[[Step], None] = _go_on
    ) -> None:
        # By type, not by a flag that a stand-in could set.
        if type(noise) is not OsNoise and not ledger.opened.simulation:
            raise NotPrivate(
                "seeded or scripted noise cannot open a real ledger; make a simulation ledger"
            )
        self._ledger, self._noise, self._at = ledger, noise, at

    def release(
        self,
        key: ReleaseKey,
        request: bytes,
        mechanism: Mechanism,
        compute: Callable[[], IntArray],
        *,
        encode: Callable[[IntArray], bytes] = int64_bytes,
    ) -> Released:
        """Release ``mechanism`` of ``compute()`` under ``key``, or replay what was released.

        Parameters
        ----------
        key
            Names the release; asked again it gives the same bytes.
        request
            Everything that shapes the answer, as received, with the versions of the local data;
            the same key with another request is refused.
        mechanism
            Its parameters come from public numbers and its price from them.
        compute
            Reads the data; called after the charge is on disk, and at most once.
        encode
            Turns the noisy integers into bytes whose number is public.
        """
        digest = hashlib.sha256(request).hexdigest()
        with self._ledger.lock:  # a second asker of the same key waits, then gets a replay
            self._at(Step.ASKED)
            # Before any row is read. A key charged before is checked against this request and
            # not charged again.
            paid = self._ledger.charge(key, mechanism, request_sha256=digest)
            self._at(Step.CHARGED)
            if (earlier := self._ledger.stored(key)) is not None:
                return earlier  # fresh noise would cost again
            value = compute()
            if value.dtype != np.int64:
                raise TypeError("only 64-bit integers pass the gate")
            self._at(Step.COMPUTED)
            # The mechanism that was paid for, rebuilt from its record: no stand-in's.
            noisy = paid.perturb(value, self._noise)
            self._at(Step.DRAWN)
            released = self._ledger.store(key, encode(noisy))  # before anything is sent
            self._at(Step.STORED)
            return released
