"""The release gate: every byte that depends on a party's data leaves by `Gate.release_many`.

Privacy: the order is the whole point. Charge and force to disk; only then read the data, draw the
noise, store the result and force it to disk; only then hand it out. A retry hands out the stored
bytes again, so it neither costs nor reveals anything. A crash between charge and store draws again
under the same charge, which is sound because nothing had left. No path refunds.

An exception between charge and store is a bug: what is computed is total for every request that
passed its checks. Tried again it would fail again, at every start, so the release is abandoned:
an entry, forced to disk before anyone is told, keeps it paid for and refused for ever, and the
party goes on with other releases. Premise: that an exception happens does not depend on data, for
the refusal tells of it. So nothing but the code is told, and the reason stays in the local log. A
failure of the ledger itself is none of this: it ends everything.

Many releases go through the door together, and one is many of one: all are charged in one commit,
then all are read, then each has noise of its own, then all are stored in one commit, and none is
handed out before. One that its account cannot afford is refused by itself; its data is not read.
One that cannot be made takes those with it that were to be made in the same call.

A sealed exchange has one more way for noise to enter, through the same door: on raw coefficients of
a ring (`privacy.ring_noise`). What is computed is then a vector of coefficients as they are, of a
ciphertext without its error, of products under encryption, or decrypted; nothing has rounded,
split, wrapped or clipped them. The mechanism adds its noise to these, and only ``encode``, which
sees noisy values, makes numbers of them. A ciphertext costs nothing and is charged all the same, in
a job that was admitted: the entry says which key, which parameters and which peers, its bytes are
stored before they are sent, and a retry replays them, so that no key and index serve twice. Keys
and masks are random but not noise; they come from the same source (`Gate.noise`).
"""

import enum
import hashlib
import itertools
import logging
import operator
from collections.abc import Callable, Sequence

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import FATAL, BudgetExceeded, NotPrivate
from colonnade.ledger.drafts import ReleaseRequest
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.ledger import MAX_TOGETHER, Ledger, Released
from colonnade.ledger.state import REFUSALS, Refusal
from colonnade.privacy.mechanisms import Mechanism, perturb_each
from colonnade.privacy.sampling import NoiseSource, OsNoise

logger = logging.getLogger(__name__)


class Step(enum.Enum):
    """Places where the crash harness may end the process."""

    ASKED = "asked"
    CHARGED = "charged"
    COMPUTED = "computed"
    DRAWN = "drawn"
    STORED = "stored"


_NOTHING = np.empty(0, np.int64)


def int64_bytes(value: IntArray) -> bytes:
    """Encode integers in eight little-endian bytes each: the length says nothing of the values."""
    return value.astype("<i8").tobytes()


def request_digest(request: bytes) -> str:
    """Return what the ledger keeps of a request."""
    return hashlib.sha256(request).hexdigest()


def _go_on(step: Step) -> None:
    """Do nothing: the harness passes something else."""


class Gate:
    """Releases from one ledger with one source of noise.

    Examples
    --------
    >>> from colonnade.ledger.create import LedgerConfig, memory_ledger
    >>> from colonnade.privacy.accounting import rho_from_units, units_down
    >>> from colonnade.privacy.mechanisms import DiscreteGaussian
    >>> ledger = memory_ledger(LedgerConfig("hospital", {"": units_down(1.0)}))
    >>> gate, count = Gate(ledger, OsNoise()), DiscreteGaussian(sigma2=50, l2_sensitivity2=1)
    >>> key = ReleaseKey("ab12", 0, "count")
    >>> first = gate.release(key, b"count", count, lambda: np.array([3000]))
    >>> round(rho_from_units(ledger.budget().spent), 6)
    0.01
    >>> again = gate.release(key, b"count", count, lambda: np.array([3000]))
    >>> again.body == first.body, ledger.budget().spent == count.cost  # a replay costs nothing
    (True, True)
    """

    def __init__(
        self, ledger: Ledger, noise: NoiseSource, *, at: Callable[[Step], None] = _go_on
    ) -> None:
        # By type, not by a flag that a stand-in could set.
        if type(noise) is not OsNoise and not ledger.opened.simulation:
            raise NotPrivate(
                "seeded or scripted noise cannot open a real ledger; make a simulation ledger"
            )
        self._ledger, self._noise, self._at = ledger, noise, at

    @property
    def noise(self) -> NoiseSource:
        """The source of randomness, for what is random beside noise: keys and masks."""
        return self._noise

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
        asked = ReleaseRequest(key, mechanism, request_digest(request))
        (reply,) = self.release_many([asked], lambda _: [compute()], encode=encode)
        if isinstance(reply, REFUSALS):
            raise reply
        return reply

    def release_many(
        self,
        requests: Sequence[ReleaseRequest],
        compute: Callable[[Sequence[ReleaseKey]], Sequence[IntArray]],
        *,
        encode: Callable[[IntArray], bytes] = int64_bytes,
    ) -> list[Released | Refusal]:
        """Release, replay or refuse each of ``requests``, in their order.

        Parameters
        ----------
        requests
            Each names another release.
        compute
            Reads the data; called at most once, after all charges are on disk, with the keys that
            were paid for and not yet answered, and returns an integer vector for each.
        """
        if len(requests) > MAX_TOGETHER:
            raise ValueError(f"at most {MAX_TOGETHER} releases go together")
        ledger = self._ledger
        with ledger.lock:  # a second asker of the same key waits, then gets a replay
            self._at(Step.ASKED)
            # Before any row is read. A key charged before is checked against this request and
            # not charged again.
            refused = ledger.charge_many(requests)
            self._at(Step.CHARGED)
            paid = [request.key for request in requests if request.key not in refused]
            # Not those that were answered before: fresh noise would cost again.
            if new := [key for key in paid if not ledger.has(key)]:
                try:
                    bodies = self._draw(new, compute(new), encode)
                    ledger.store_many(bodies)  # before anything is sent
                except FATAL:
                    raise
                except Exception:  # whatever it was, it must not meet the same release again
                    logger.exception("release_abandoned first=%s count=%d", new[0][:3], len(new))
                    refused |= ledger.abandon_many(new)
                else:
                    self._at(Step.STORED)
            made = [key for key in paid if key not in refused]
            released = {each.key: each for each in ledger.stored_many(made)}
            return [refused.get(request.key) or released[request.key] for request in requests]

    def release_sum(
        self,
        requests: Sequence[ReleaseRequest],
        compute: Callable[[Sequence[ReleaseKey]], IntArray],
        *,
        encode: Callable[[IntArray], bytes] = int64_bytes,
    ) -> list[Released | Refusal]:
        """Release one noisy sum over the data of several accounts, each charged for itself.

        Whoever cannot pay is refused by itself and is not in the sum. The bytes are stored under
        the first key that was paid for, and nothing under the others: that says who is in the sum,
        and a retry finds both; it adds nobody. The noise is that of one release.

        Parameters
        ----------
        requests
            All with one mechanism; each request's digest must cover all that are asked together,
            so that nobody is in two sums under one key.
        compute
            Returns the sum over those that were paid for.
        """
        if len({request.mechanism for request in requests}) > 1:
            raise ValueError("a sum has one mechanism")

        def parts(keys: Sequence[ReleaseKey]) -> Sequence[IntArray]:
            return [compute(keys)] + [_NOTHING] * (len(keys) - 1)

        def code(noisy: IntArray) -> bytes:
            return encode(noisy) if noisy.size else b""

        with self._ledger.lock:
            charged = [request for request in requests if request.key in self._ledger.state.charges]
            asked = charged or list(requests)
            replies = self.release_many(asked, parts, encode=code)
        found = {request.key: reply for request, reply in zip(asked, replies, strict=True)}
        # Who could not pay when the sum was made is in no second one, whatever came since.
        late = BudgetExceeded("the account could not pay when the sum was made")
        return [found.get(request.key, late) for request in requests]

    def _draw(
        self,
        keys: Sequence[ReleaseKey],
        values: Sequence[IntArray],
        encode: Callable[[IntArray], bytes],
    ) -> dict[ReleaseKey, bytes]:
        """Return what may be released of ``values``."""
        if any(value.dtype != np.int64 for value in values):
            raise TypeError("only 64-bit integers pass the gate")
        self._at(Step.COMPUTED)
        bodies = {}
        # The mechanism that was paid for, rebuilt from its record: no stand-in's.
        paid = [self._ledger.state.charges[key].mechanism for key in keys]
        each = zip(keys, values, paid, strict=True)
        for mechanism, group in itertools.groupby(each, operator.itemgetter(2)):
            names, exact, _ = zip(*group, strict=True)
            noisy = perturb_each(mechanism, exact, self._noise)
            for name, value in zip(names, noisy, strict=True):
                self._at(Step.DRAWN)
                bodies[name] = encode(value)
        return bodies
