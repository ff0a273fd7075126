"""The types of the report object; ``colonnade.report`` says what each field means."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

FORMAT = "colonnade report"
VERSION = 1


class Amount(TypedDict):
    """A privacy amount: exact units of ``2**-50`` rho, and the same as rho and as epsilon."""

    units: int
    rho: float
    epsilon: float


class Spend(TypedDict):
    """What may be spent at most, and what was."""

    max: Amount
    spent: Amount


class JobSpend(Spend):
    """The same of a job alone, of bounds bought before it, and of both; None where not known."""

    bounds: Amount | None
    total: Spend | None


class LabelSpend(JobSpend):
    """What the label costs; ``who`` says whose releases depend on it."""

    who: str


class KindSpend(TypedDict):
    """What a party spent on one kind of release."""

    kind: str
    releases: int
    spent: Amount


class PartySpend(JobSpend):
    """What a party promised and spent; cap and ledger are None where it did not tell them."""

    party: str
    cap: Amount | None
    ledger_spent: Amount | None
    by_kind: Sequence[KindSpend]


class RoundSpend(TypedDict):
    """Units charged in one round, by party: not cumulative."""

    round: int
    spent: Mapping[str, int]


class Privacy(TypedDict):
    """What is promised to whom, and what it cost."""

    delta: float
    statement: str
    bounds_note: str
    joint: JobSpend
    label: LabelSpend
    parties: Sequence[PartySpend]
    by_round: Sequence[RoundSpend]


class UplinkRow(TypedDict):
    """Bytes of one round, party and kind."""

    round: int
    party: str
    kind: str
    payload_bytes: int
    predicted_bytes: int
    wire_bytes: int
    messages: int
    retry_bytes: int


class ClientUplink(TypedDict):
    """What each client sent, by party in its clients' own order; an answer has ``body_bytes``."""

    kind: str
    body_bytes: int
    answers: Mapping[str, Sequence[int]]
    payload_bytes: Mapping[str, Sequence[int]]


class Uplink(TypedDict):
    """Bytes from the parties to the coordinator; the totals are the sums of the rows."""

    payload_bytes: int
    predicted_bytes: int
    wire_bytes: int
    retry_bytes: int
    rows: Sequence[UplinkRow]
    predicted_most_bytes: NotRequired[int]  # of a job over clients, as are the next
    clients: NotRequired[ClientUplink]


class PathPoint(TypedDict):
    """The scaled coefficients after one round, by party, in the model's order."""

    round: int
    coef: Mapping[str, Sequence[float]]


class Score(TypedDict):
    """One more measure of the three models."""

    metric: str
    ours: float
    central: float
    nonprivate: float


class Probabilities(TypedDict):
    """A classifier's probabilities beside the base rate, on the rows that quality is about."""

    mean_probability: float
    base_rate: float
    log_loss: float
    base_rate_log_loss: float  # of the base rate as everybody's probability


class Quality(TypedDict):
    """Accuracy on known data, which only a simulation has."""

    simulation_only: Literal[True]
    metric: Literal["r2", "auc"]
    ours: float
    nonprivate: float
    central: float
    by_round: Sequence[float]
    rows: Literal["held-out", "fitted"]  # what it was computed on, and how many there were
    n_rows: int
    central_is: str  # what protects whom in the private reference
    nonprivate_is: str  # how the other reference was fitted
    others: NotRequired[Sequence[Score]]
    probabilities: NotRequired[Probabilities]


class PlainName(TypedDict):
    """A feature by its party and name."""

    party: str
    name: str


class MomentsPath(TypedDict):
    """LASSO solutions in standard deviations, one row of coefficients for each penalty."""

    penalties: Sequence[float]
    coefs: Sequence[Sequence[float]]
    chosen: float


class MomentsIntervals(TypedDict):
    """Coefficients without penalty, in standard deviations, with errors and intervals."""

    level: float
    coef: Sequence[float]
    error: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


class MomentsExplained(TypedDict):
    """The share of the label's variance that releases say the model explains, and its error."""

    share: float
    error: float


class Moments(TypedDict):
    """What else the releases of a moments job tell."""

    features: Sequence[PlainName]
    left_out: int
    path: MomentsPath
    correlations: Sequence[Sequence[float]]
    intervals: MomentsIntervals | None
    explained: MomentsExplained | None


class LocalClients(TypedDict):
    """What clients' own accounts enforce."""

    enforced: Literal[True]
    max: Amount
    median: Amount
    promised: Amount


class CentralModel(TypedDict):
    """What the published models alone reveal, if all premises hold."""

    enforced: Literal[False]
    label: str
    epsilon: float | None
    note: str
    premises: Sequence[str]


class RoundCount(TypedDict):
    """A round over clients: how many it asked in how many drawings; ``done`` with its minimum."""

    round: int
    asked: int
    answers: int
    drawings: int
    done: bool


class Clients(TypedDict):
    """What a job over clients cost each of them."""

    count: int
    declined: int
    answers: int
    minimum: int
    sampled: int
    limit: int
    at_limit: int
    rounds: Sequence[RoundCount]
    unused: int
    local: LocalClients
    central: CentralModel
    curves: Sequence[Mapping[str, float | int | None]]
    body_bytes: int
    answers_by_client: Mapping[str, Sequence[int]]


class Unused(TypedDict):
    """A party that paid for a model which uses none of its features."""

    party: str
    spent: Amount
    note: str


class FeaturePerDeviation(TypedDict):
    """A feature's deviation in its unit, and its coefficient for one; None if noise hides it."""

    party: str
    name: str
    deviation: float | None
    coef: float | None


class PerDeviation(TypedDict):
    """Coefficients on the scale of released deviations, in the model's order."""

    features: Sequence[FeaturePerDeviation]


class Rounds(TypedDict):
    """How far the job came."""

    planned: int
    done: int


class Report(TypedDict):
    """All that a report tells."""

    format: Literal["colonnade report"]
    version: Literal[1]
    job_id: str
    name: str
    method: str
    state: Literal["finished", "failed", "cancelled", "running", "proposed"]
    reason: str
    private: bool
    submitted_at: str
    ended_at: str | None
    seconds: float
    n_rows: NotRequired[int]  # of a job over columns
    n_clients: NotRequired[int]  # of a job over clients
    loss: str
    labels: Literal["shared", "sketched"]
    rounds: Rounds
    parameters: Mapping[str, float | str]
    privacy: Privacy
    uplink: Uplink
    model: Mapping[str, Any] | None
    per_deviation: NotRequired[PerDeviation | None]
    path: Sequence[PathPoint]
    unused: Sequence[Unused]
    quality: Quality | None
    clients: NotRequired[Clients]  # of a job over clients
    simulation: NotRequired[Mapping[str, float | str]]  # what was made up, by name
    moments: NotRequired[Moments | None]


def is_over_clients(report: Report) -> bool:
    """Return whether the unit of privacy is a client and not a record."""
    return "n_clients" in report
