"""The types of a report's parts that only some methods, or only simulations, have."""

import msgspec


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """A value of a report."""


class Amount(Value, frozen=True):
    """A privacy amount: exact units of ``2**-50`` rho, and the same as rho and as epsilon."""

    units: int
    rho: float
    epsilon: float


class Score(Value, frozen=True):
    """One more measure of the three models."""

    metric: str
    ours: float
    central: float
    nonprivate: float


class Probabilities(Value, frozen=True):
    """A classifier's probabilities beside the base rate, on the rows that quality is about."""

    mean_probability: float
    base_rate: float
    log_loss: float
    base_rate_log_loss: float  # of the base rate as everybody's probability


class Quality(Value, frozen=True):
    """Accuracy on known data, which only a simulation has."""

    metric: str
    ours: float
    nonprivate: float | None  # None if the references were left out
    central: float | None
    by_round: tuple[float, ...]
    rows: str  # what it was computed on: held-out or fitted
    n_rows: int
    central_is: str  # what protects whom in the private reference
    nonprivate_is: str  # how the other reference was fitted
    others: tuple[Score, ...] = ()
    probabilities: Probabilities | None = None


class FeatureName(Value, frozen=True):
    """A feature by its party and name."""

    party: str
    name: str


class MomentsPath(Value, frozen=True):
    """LASSO solutions in standard deviations, one row of coefficients for each penalty."""

    penalties: tuple[float, ...]
    coefs: tuple[tuple[float, ...], ...]
    chosen: float


class MomentsIntervals(Value, frozen=True):
    """Coefficients without penalty, in standard deviations, with errors and intervals.

    Odds ratios are those of one deviation more, with their intervals; of classes only.
    """

    level: float
    coef: tuple[float, ...]
    error: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    p_value: tuple[float, ...] = ()
    vif: tuple[float, ...] = ()
    odds_ratio: tuple[float, ...] = ()
    odds_low: tuple[float, ...] = ()
    odds_high: tuple[float, ...] = ()


class MomentsExplained(Value, frozen=True):
    """The share of the label's variance that releases say the model explains; a standard error.

    Of classes also the AUC that a score with such a share has.
    """

    share: float
    error: float
    auc: float | None = None
    auc_error: float | None = None


class Overlap(Value, frozen=True):
    """About how many people two parties have in common, from an alignment's noisy counts."""

    parties: tuple[str, str]
    people: int


class Moments(Value, frozen=True):
    """Further estimates from the releases of a moments job (post-processing)."""

    features: tuple[FeatureName, ...]
    left_out: int
    path: MomentsPath
    correlations: tuple[tuple[float, ...], ...]
    intervals: MomentsIntervals | None = None
    explained: MomentsExplained | None = None
    overlap: tuple[Overlap, ...] = ()


class SealedRelease(Value, frozen=True):
    """A release of a sealed job, and on which promise it rests."""

    party: str
    kind: str
    promise: str
    holds: str
    rho: float


class Sealed(Value, frozen=True):
    """What a sealed job promises, release by release."""

    experimental: bool
    promise: str
    parties: tuple[str, ...]
    buckets: int
    shields: dict[str, float]
    max_key_bits: int
    opened_bits: dict[str, int]
    releases: tuple[SealedRelease, ...]
    peer_bits: dict[str, int] = {}


class LocalClients(Value, frozen=True):
    """What clients' own accounts enforce."""

    max: Amount
    median: Amount
    promised: Amount


class CentralModel(Value, frozen=True):
    """What the published models alone reveal, if all premises hold."""

    epsilon: float | None
    note: str
    premises: tuple[str, ...]


class RoundCount(Value, frozen=True):
    """A round over clients: how many it asked in how many drawings; ``done`` with its minimum."""

    round: int
    asked: int
    answers: int
    drawings: int
    done: bool
    minimum: int = 0


class ClientCurve(Value, frozen=True):
    """Both figures of epsilon after so many rounds."""

    round: int
    local_max_epsilon: float
    local_median_epsilon: float
    central_epsilon: float | None


class SecureSums(Value, frozen=True):
    """Where only the sum over all hosts was opened: whom that rests on, and what is left else."""

    holds: str
    maskers: int
    colluding: int
    threshold: int
    honest: int
    alone: Amount


class Clients(Value, frozen=True):
    """What a job over clients cost each of them."""

    count: int
    declined: int
    answers: int
    minimum: int
    sampled: int
    limit: int
    at_limit: int
    rounds: tuple[RoundCount, ...]
    unused: int
    local: LocalClients
    central: CentralModel
    curves: tuple[ClientCurve, ...]
    body_bytes: int
    answers_by_client: dict[str, tuple[int, ...]]
    meant: int = 0
    variant: str = "paper"
    aggregate: str = "none"
    steps: int = 0
    intercept_bytes: int = 0
    payload_by_client: dict[str, tuple[int, ...]] = {}
    cohort: SecureSums | None = None
