"""The one iteration of which every solver is an instance.

    u_b  <-  u_b + lambda_k ( R_b(u) + e_b + noise - u_b )

over blocks ``b`` of coordinates (Cyffers, Bellet and Basu 2023). ``R`` is a map whose fixed points
are, or give, the minimisers; a solver says what ``R`` is, what it must ask of the data to evaluate
one block of it, and which block comes next. Everything it asks goes through a `Release`.

| solver       | block          | R_b(u)                                        | lambda_k    |
|--------------|----------------|-----------------------------------------------|-------------|
| DP-SGD       | all            | prox(u - step * gradient of a batch)          | 1           |
| DP-CD        | one, in turn   | prox_j(u_j - step_j * j-th partial derivative) | 1           |
| DP-GCD       | one, selected  | u_j - step_j * j-th partial derivative        | 1           |
| DP-FW        | all            | the vertex with the least inner product       | 2 / (k + 2) |
| DP-SCD       | all of v       | v + the dual updates of a batch               | 1           |
| private ADMM | all            | 2 prox_f(2 z - u) - 2 z + u, z = prox_r(u)    | chosen      |
"""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate
from colonnade.privacy.mechanisms import DiscreteGaussian, Mechanism, SignedSelection
from colonnade.privacy.sampling import NoiseSource

Block: TypeAlias = int | slice
EVERYTHING = slice(None)
Trail: TypeAlias = list[tuple[int, FloatArray]]
"""How a model came about: steps done and the coefficients then, some 200 of them."""

TRAIL_LENGTH = 200
# Coordinates beyond this are a divergence, noticed before floats overflow in the rows.
_DIVERGED = 1e100
_AHEAD = 512


class Diverged(ArithmeticError):
    """The coefficients ran away: the step is too long for this noise."""


class Release(Protocol):
    """The way from the data to a solver: priced, noisy integers."""

    def __call__(
        self, kind: str, round_: int, mechanism: Mechanism, compute: Callable[[], IntArray]
    ) -> IntArray:
        """Return what ``mechanism`` makes of ``compute()``."""


class Operator(Protocol):
    """A solver at work: the map ``R``, evaluated through releases."""

    def relaxation(self, k: int) -> float:
        """Return ``lambda_k``."""

    def target(self, k: int, u: FloatArray, release: Release) -> tuple[Block, FloatArray | float]:
        """Return the block of step ``k`` and ``R_b(u) + noise`` there."""

    def follow(self, block: Block, change: FloatArray | float) -> None:
        """Note that ``u_b`` was changed: what is kept of the rows moves with it."""

    def model(self, u: FloatArray) -> FloatArray:
        """Return the coefficients that ``u`` stands for."""


@runtime_checkable
class Sweeper(Protocol):
    """An operator that can take many steps in compiled code, given their noise."""

    @property
    def sweeps(self) -> Mechanism | None:
        """The mechanism of every step, or None if steps must be taken one by one."""

    def sweep(self, first: int, u: FloatArray, noise: IntArray) -> None:
        """Take a step for every entry of ``noise``; ``u`` changes in place."""


def iterate(
    operator: Operator,
    u: FloatArray,
    release: Release,
    *,
    steps: int,
    average_every: int = 0,
    progress: Callable[[int], None] | None = None,
    trail: Trail | None = None,
) -> FloatArray:
    """Run the iteration from ``u`` and return the model.

    Parameters
    ----------
    average_every
        If positive, every so many steps continue from the mean of the iterates since the last
        time (the periodic averaging of DP-CD: ``steps / average_every`` periods).
    progress
        Called with the number of steps done.
    trail
        Is appended to. Privacy: of functions of the releases alone, as the model is.

    References
    ----------
    Cyffers, Bellet and Basu (2023). From noisy fixed-point iterations to private ADMM for
    centralized and federated learning. ICML.

    Examples
    --------
    >>> class Halve:  # a map without data, whose fixed point is 0
    ...     def relaxation(self, k):
    ...         return 1.0
    ...     def target(self, k, u, release):
    ...         return EVERYTHING, u / 2.0
    ...     def follow(self, block, change):
    ...         pass
    ...     def model(self, u):
    ...         return u
    >>> iterate(Halve(), np.array([8.0]), Noiseless(), steps=3)
    array([1.])
    """
    u = u.copy()
    apart = -(-steps // TRAIL_LENGTH)
    taken = _steps(operator, u, release, steps=steps, average_every=average_every)
    watched = apart
    if isinstance(release, Direct) and isinstance(operator, Sweeper) and not average_every:
        mechanism = operator.sweeps
        if isinstance(mechanism, DiscreteGaussian):
            ahead = _AHEAD if trail is None else min(_AHEAD, apart)
            taken = _sweep(operator, mechanism, u, release, steps=steps, ahead=ahead)
            watched = ahead
    for done in taken:
        if progress is not None:
            progress(done)
        if trail is not None and (done % watched == 0 or done == steps):
            trail.append((done, operator.model(u).copy()))
    return operator.model(u)


def _steps(
    operator: Operator, u: FloatArray, release: Release, *, steps: int, average_every: int
) -> Iterator[int]:
    """Take one step after the other; ``u`` changes in place. Yield the number of steps done."""
    total = np.zeros_like(u)
    for k in range(steps):
        block, target = operator.target(k, u, release)
        change = operator.relaxation(k) * (target - u[block])
        u[block] += change
        moved = u[block]
        if not (abs(moved) < _DIVERGED if isinstance(block, int) else _bounded(moved)):
            raise Diverged(f"step {k + 1} of {steps}")
        operator.follow(block, change)
        if average_every:
            total += u
            if (k + 1) % average_every == 0:
                jump = total / average_every - u
                u += jump
                operator.follow(EVERYTHING, jump)
                total[:] = 0.0
        yield k + 1


def _sweep(
    operator: Sweeper,
    mechanism: DiscreteGaussian,
    u: FloatArray,
    release: "Direct",
    *,
    steps: int,
    ahead: int,
) -> Iterator[int]:
    """Run the same iteration ``ahead`` steps at a time; yield the number of steps done."""
    for first in range(0, steps, ahead):
        done = min(first + ahead, steps)
        operator.sweep(first, u, release.draw(mechanism, done - first))
        if not _bounded(u):
            raise Diverged(f"step {done} of {steps}")
        yield done


def _bounded(u: FloatArray) -> bool:
    return bool((np.abs(u) < _DIVERGED).all())


class Direct:
    """Releases to the caller in memory: for `fit` without a ledger, and for simulations.

    Gaussian noise is drawn some steps ahead, for it costs less in bulk. What was drawn lives and
    ends with this object, which one fit in one process uses.

    Examples
    --------
    >>> from colonnade.privacy.sampling import OsNoise
    >>> release = Direct(OsNoise())
    >>> noisy = release("sum", 0, DiscreteGaussian(100, 1), lambda: np.array([7]))
    >>> bool(abs(noisy[0] - 7) < 200)
    True
    """

    def __init__(self, noise: NoiseSource) -> None:
        self._noise = noise
        self._ahead: dict[str, tuple[Mechanism, list[IntArray]]] = {}

    def draw(self, mechanism: DiscreteGaussian, count: int) -> IntArray:
        """Draw the noise of ``count`` releases of one integer each."""
        return self._noise.discrete_gaussian(mechanism.sigma2, count)

    def __call__(
        self, kind: str, round_: int, mechanism: Mechanism, compute: Callable[[], IntArray]
    ) -> IntArray:
        """Return what ``mechanism`` makes of ``compute()``."""
        value = compute()
        if type(mechanism) is not DiscreteGaussian:
            return mechanism.perturb(value, self._noise)
        drawn_for, waiting = self._ahead.get(kind, (None, []))
        if drawn_for is not mechanism or not waiting or waiting[-1].size != value.size:
            count = 1 if round_ == 0 else max(1, _AHEAD // value.size)
            drawn = self._noise.discrete_gaussian(mechanism.sigma2, count * value.size)
            waiting = list(drawn.reshape(count, value.size))
            self._ahead[kind] = mechanism, waiting
        return value + waiting.pop()


class Noiseless:
    """Releases without noise: the solver's non-private counterpart. Not private.

    Examples
    --------
    >>> Noiseless()("sum", 0, DiscreteGaussian(100, 1), lambda: np.array([7]))
    array([7])
    """

    def __call__(
        self,
        kind: str,  # noqa: ARG002 - no key is kept
        round_: int,  # noqa: ARG002
        mechanism: Mechanism,
        compute: Callable[[], IntArray],
    ) -> IntArray:
        """Return ``compute()`` itself, or the best candidate of a selection."""
        value = compute()
        if not isinstance(mechanism, SignedSelection):
            return value
        best = int(np.argmax(np.abs(value)))
        return np.array([best, 1 if value[best] >= 0 else -1], np.int64)


class Gated:
    """Releases through a ledger's gate, one key a step: a crash resumes where it stopped."""

    def __init__(self, gate: Gate, job: str, request: bytes) -> None:
        self._gate, self._job, self._request = gate, job, request

    def __call__(
        self, kind: str, round_: int, mechanism: Mechanism, compute: Callable[[], IntArray]
    ) -> IntArray:
        """Return what ``mechanism`` makes of ``compute()``, charged and stored, or its replay."""
        key = ReleaseKey(self._job, round_, kind)
        released = self._gate.release(key, self._request, mechanism, compute)
        return np.frombuffer(released.body, "<i8").astype(np.int64)
