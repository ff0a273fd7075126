"""The types of a report's parts that only some methods, or only simulations, have."""

from typing import Any

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
    nonprivate: float
    central: float
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
    """What else the releases of a moments job tell."""

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


class Contribution(Value, frozen=True):
    """What a party's columns explain alone, and all others without them; standard errors.

    ``lost`` is what the job's model explains beyond the latter. Of classes also the AUC.
    """

    alone: float
    without: float
    alone_error: float | None = None
    without_error: float | None = None
    lost: float | None = None
    lost_error: float | None = None
    alone_auc: float | None = None
    alone_auc_error: float | None = None
    without_auc: float | None = None
    without_auc_error: float | None = None


class CalibrationGroup(Value, frozen=True):
    """Mean prediction and mean label of a group of held-out people; a standard error."""

    predicted: float
    observed: float
    error: float


class Evaluation(Value, frozen=True):
    """A released score on people kept out of the fit, its standard error and its price."""

    metric: str
    value: float
    error: float
    epsilon: float
    party: str = ""
    n_rows: int = 0
    log_loss: float | None = None
    calibration: tuple[CalibrationGroup, ...] = ()


class Trail(Value, frozen=True):
    """The scaled coefficients of a fit's largest features after some of its steps."""

    features: tuple[str, ...]
    steps: tuple[int, ...]
    coef: tuple[tuple[float, ...], ...]


class FitRelease(Value, frozen=True):
    """A kind of release in a fit: its mechanism's integers and how many one row can affect."""

    kind: str
    mechanism: str
    count: int
    touches: int
    sigma2: int | None = None
    l2_sensitivity2: int | None = None
    scale: float | None = None
    sensitivity: float | None = None
    l1_sensitivity: float | None = None


class FitPrivacy(Value, frozen=True):
    """The claim of a fit."""

    private: bool
    epsilon: float
    delta: float
    rho: float | None
    charged_rho: float
    solver: str
    sampling_rate: float
    releases: tuple[FitRelease, ...]
    neighbours: str
    statement: str
    amplified_epsilon: float | None = None


class FitLedger(Value, frozen=True):
    """What a ledger was charged for a fit, and has left."""

    ledger_id: str
    charged_now_rho: float
    left_rho: float


class Penalty(Value, frozen=True):
    """A fit's penalty: elastic net within a box, or a registered one by its name."""

    l1: float = 0.0
    l2: float = 0.0
    box: float | None = None
    name: str = ""
    strength: float = 0.0


class Fit(Value, frozen=True):
    """What only the report of a fit at one site says."""

    penalty: Penalty
    intercept: bool
    settings: dict[str, Any]
    privacy: FitPrivacy
    ledger: FitLedger | None
    path: Trail
