"""The frozen specification of a federated ADMM job, and what follows from it.

Clients hold rows; ``f_i`` is the mean loss over client ``i``'s rows and ``r`` the penalty. The job
minimises ``(1/n) sum_i f_i(w) + r(w)`` by the consensus ADMM of Cyffers, Bellet and Basu (2023).
Client ``i`` has a public dual ``u_i``, a function of what it released before. A sampled client is
sent ``v = 2 z - u_i`` and releases its displacement ``d = prox_(gamma f_i)(v) - v``, with noise:

    u_i <- u_i + 2 lambda (z - u_i + d),        z = prox_(gamma r)(mean of all u_i).

A dual carries its client's own noise, so that with strong noise ``v`` lies far from any useful
point. With a ``dual_weight`` below 1 clients are sent ``v = z - dual_weight (u_i - z)``. That tames
the noise at the price of a bias: gradients are then taken at ``z + (1 - dual_weight) d``.

Fixed point. Everything that crosses the wire is an integer multiple of one public length, the grid
step ``delta = gamma L / R`` with ``R = 2**radius_bits``: ``z``, ``u_i``, ``v`` and ``d``.

Privacy: neighbours differ in all the data of one client. The integer vector ``k`` that a client
hands to the mechanism satisfies ``|k|**2 <= R**2``, checked in integers as the last step before the
noise, for any data and any ``v`` (`admm.kernels.to_grid`). So for two neighbours and the same
``v``, by the triangle inequality, ``|k - k'| <= |k| + |k'| <= 2 R``: the squared sensitivity is the
integer ``4 R**2``, whatever the loss, the solver's accuracy or the coordinator. The discrete
Gaussian with variance ``s`` (in squared grid steps) then costs ``4 R**2 / (2 s)`` zCDP. In the
units of the model the noise has ``sigma_d**2 = s delta**2``, so that this is
``(2 gamma L)**2 / (2 sigma_d**2)``; the paper adds ``lambda eta`` to ``u_i`` where this adds
``2 lambda`` times the noise, hence its ``sigma`` is ``2 sigma_d`` and the price
``8 gamma**2 L**2 / sigma**2``. Rounding is towards zero, so it cannot lengthen a vector that was
clipped to ``gamma L``. The bound is attained: by displacements ``+R`` and ``-R`` along one axis.

If every ``f_i`` is ``L``-Lipschitz the clip never acts: its proximal points are within ``gamma L``.

That is the paper's variant. The planned one (`admm.recipe`) and gradient steps keep no duals: all
clients of a round are sent one point. A planned round ``t`` has a radius ``R_t`` of its own, a
number of 1024ths of ``R`` in the same grid steps, and its last rounds ask for one number, the
intercept. The argument is the same with ``R_t`` for ``R``; see `admm.releases`.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.losses import LOGISTIC, SQUARED, Loss
from colonnade.linear.penalties import Penalty, no_penalty
from colonnade.masking.rules import CohortRules
from colonnade.methods.admm.choices import (
    Aggregate,
    ClientSampling,
    CohortSize,
    Variant,
    check_plan,
)
from colonnade.methods.admm.releases import (
    DISPLACEMENT,
    INTERCEPT,
    WHOLE,
    ClientRelease,
    intercept_release,
    planned_release,
    whole_release,
)
from colonnade.methods.base import MAX_CLIENTS
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.privacy.distributed import GaussianShare
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.sketching.packing import ShareCode

MAX_DIM = 2**16
MAX_ROUNDS = 10**6
# Bounds in grid steps. A sum of MAX_CLIENTS states fits 63 bits, and so does a step's product.
MAX_STATE = 2**42
MAX_V = 2**44
MAX_SUM = 2**56
# Clients of one sum: as many as one commit of a ledger charges.
MAX_TERMS = 1024
# The step 2 lambda and the weight of the duals in fixed point.
STEP_UNIT = 2**16
_LEAST, _MOST = 2.0**-40, 2.0**40


@dataclass(frozen=True, slots=True)
class AdmmSpec:
    """A model over clients' rows by federated private ADMM.

    Parameters
    ----------
    release_units
        The most that one participation costs a client, in units of ``2**-50`` rho.
    gamma, lipschitz
        Length of the proximal steps, and ``L``: displacements are clipped to ``gamma L``.
    step
        ``lambda``, in (0, 1].
    sampled
        Clients of a round; under Poisson sampling their expected number.
    minimum
        A round never closes with fewer answers.
    participations
        The most that a client is ever asked for; 0 for no limit but the rounds.
    dual_weight
        In [0, 1]; 1 is the paper's algorithm, the only one that finds the exact optimum.
    radius_bits
        ``gamma L`` is ``2**radius_bits`` grid steps.
    coarse
        Whether noisy displacements are rounded to a quarter of their noise on the wire.
    variant
        Gradient steps have the length ``gamma / sqrt(t)`` and are clipped to ``gamma L``.
    radii
        Planned: the radius of each round of displacements, in 1024ths of ``gamma L``.
    intercept_rounds, intercept_units
        Planned: the last rounds, which ask every client once for its own intercept, and the most
        that this costs it, in units of ``2**-50`` rho.
    client_rows
        Planned: how many rows clients are expected to have.
    aggregate
        Whether hosts release sums; duals need every client's own answer.
    maskers, colluding
        Sums over a cohort: how many hosts mask, and how many of them may collude.
    """

    n_clients: int
    n_features: int
    rounds: int
    sampled: int
    release_units: int
    gamma: float
    lipschitz: float
    step: float = 0.5
    loss: Loss = SQUARED
    penalty: Penalty = field(default_factory=no_penalty)
    intercept: bool = False  # a last coordinate of ones, not penalised
    sampling: ClientSampling = ClientSampling.FIXED
    minimum: int = 1
    participations: int = 0
    dual_weight: float = 1.0
    radius_bits: int = 26
    coarse: bool = True
    variant: Variant = Variant.PAPER
    radii: tuple[int, ...] = ()
    intercept_rounds: int = 0
    intercept_units: int = 0
    client_rows: int = 0
    aggregate: Aggregate = Aggregate.NONE
    maskers: int = 0
    colluding: int = 0
    # Displacements and intercepts of full radius (see the module for their price). They follow from
    # the public numbers above and are asked for often.
    displacement: ClientRelease = field(init=False, repr=False, compare=False)
    own_intercept: ClientRelease | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.n_clients <= MAX_CLIENTS or not 1 <= self.rounds <= MAX_ROUNDS:
            raise ValueError(f"a job has 1 to {MAX_CLIENTS} clients and 1 to {MAX_ROUNDS} rounds")
        if self.n_features < 1 or self.dim > MAX_DIM:
            raise ValueError(f"a job has 1 to {MAX_DIM} coefficients")
        if not 1 <= self.minimum <= self.sampled <= self.n_clients:
            raise ValueError("a round needs 1 <= minimum <= sampled <= clients")
        if not 0 <= self.participations <= self.rounds:
            raise ValueError("a client cannot take part more often than there are rounds")
        if not (_LEAST <= self.gamma <= _MOST and _LEAST <= self.lipschitz <= _MOST):
            raise ValueError("gamma and L must lie between 2**-40 and 2**40")
        if not 0.0 < self.step <= 1.0 or self.gain < 1:
            raise ValueError("the step must lie above 2**-17 and not above 1")
        if not 0.0 <= self.dual_weight <= 1.0:
            raise ValueError("the duals' weight must lie between 0 and 1")
        if self.loss not in (SQUARED, LOGISTIC):
            raise ValueError("the loss must be squared or logistic")
        if not 8 <= self.radius_bits <= 30:
            raise ValueError("the radius must have 8 to 30 bits")
        check_plan(self)
        if self.release_units < 1 or self.max_units > MAX_UNITS:
            raise ValueError("a participation needs a price that a ledger can hold")
        last = intercept_release(self) if self.intercept_rounds else None
        object.__setattr__(self, "displacement", self._displacement(WHOLE))
        object.__setattr__(self, "own_intercept", last)
        for code in (each.code for each in (self.displacement, last) if each is not None):
            if self.maskers:
                break  # words, which may wrap
            if code.step << (code.width - 1) > (MAX_STATE if self.max_terms == 1 else MAX_SUM):
                raise ValueError(
                    "a participation costs too little: its noise would not fit the state"
                )

    @property
    def cohort_rules(self) -> CohortRules | None:
        """How many maskers a secure sum has and needs; None if there are no such sums."""
        return CohortRules(self.maskers, self.colluding) if self.maskers else None

    @property
    def dim(self) -> int:
        """Number of coefficients, the intercept among them."""
        return self.n_features + self.intercept

    @property
    def steps(self) -> int:
        """Rounds of displacements; those of the intercept follow."""
        return self.rounds - self.intercept_rounds

    @property
    def mechanism(self) -> DiscreteGaussian | GaussianShare:
        """The noise of a displacement of full radius."""
        return self.displacement.mechanism

    @property
    def code(self) -> ShareCode:
        """How a noisy displacement of full radius is packed."""
        return self.displacement.code

    def release(self, round_: int) -> ClientRelease:
        """Return what clients release in a round: every kind has one price and one size."""
        if round_ > self.steps and self.own_intercept is not None:
            return self.own_intercept
        return self._displacement(self.radii[round_ - 1]) if self.radii else self.displacement

    def release_of(self, kind: str) -> ClientRelease:
        """Return a release of ``kind`` of full radius; `ValueError` if the job has none."""
        if kind == INTERCEPT and self.own_intercept is not None:
            return self.own_intercept
        if kind != DISPLACEMENT:
            raise ValueError("the job has no such kind")
        return self.displacement

    def point_size(self, round_: int) -> int:
        """Return how many numbers a client is sent; in rounds of the intercept a radius too."""
        return self.dim + (round_ > self.steps)

    def cohort(self, round_: int) -> CohortSize:
        """Return the cohort of a round; rounds of the intercept ask everybody once in all."""
        if round_ <= self.steps:
            return CohortSize(self.sampled, self.minimum, self.max_participations)
        each = -(-self.n_clients // self.intercept_rounds)
        return CohortSize(each, min(self.minimum, self.n_clients // self.intercept_rounds), 1)

    @property
    def max_terms(self) -> int:
        """The most clients whose vectors are added before the noise."""
        if self.aggregate is Aggregate.NONE:
            return 1
        most = -(-self.n_clients // self.intercept_rounds) if self.intercept_rounds else 1
        return min(MAX_TERMS, max(self.max_sampled, most))

    @property
    def radius(self) -> int:
        """``gamma L`` in grid steps: what no displacement exceeds."""
        return 1 << self.radius_bits

    @property
    def unit(self) -> float:
        """Length of a grid step."""
        return math.ldexp(self.gamma * self.lipschitz, -self.radius_bits)

    @property
    def gain(self) -> int:
        """``2 lambda`` in STEP_UNIT."""
        return round(2.0 * self.step * STEP_UNIT)

    @property
    def dual_gain(self) -> int:
        """``dual_weight`` in STEP_UNIT."""
        return round(self.dual_weight * STEP_UNIT)

    @property
    def max_sampled(self) -> int:
        """The most clients of a round; Poisson sampling exceeds it once in 10**20 rounds."""
        if self.sampling is ClientSampling.FIXED:
            return self.sampled
        return min(self.n_clients, self.sampled + 12 * math.isqrt(self.sampled) + 60)

    @property
    def max_participations(self) -> int:
        """How often the job can ever ask one client."""
        return self.participations or self.steps

    @property
    def max_units(self) -> int:
        """The most that the job can ever cost a client: what the client sets aside."""
        return self.release_units * self.max_participations + self.intercept_units

    @property
    def body_bytes(self) -> int:
        """Exact size of a displacement's payload."""
        return self.code.n_bytes

    @property
    def intercept_bytes(self) -> int:
        """Exact size of an intercept's payload; 0 if there is none."""
        return 0 if self.own_intercept is None else self.own_intercept.code.n_bytes

    def payload_bytes(self, releases: int, intercepts: int = 0) -> int:
        """Return the exact payload of so many releases: each of a kind has the same size."""
        return releases * self.body_bytes + intercepts * self.intercept_bytes

    @property
    def scales(self) -> FloatArray:
        """Which coordinates are penalised: 1, and 0 for the intercept."""
        return np.append(np.ones(self.dim - 1), 0.0 if self.intercept else 1.0)

    def _displacement(self, part: int) -> ClientRelease:
        return planned_release(self, part) if self.radii else whole_release(self)
