"""The types of a report; ``colonnade.report`` says what each field means.

``read`` makes one `Report` from the object of a job's or of a fit's ``report.json``. Fields that
this version does not know are ignored; sections that a report does not have are None or empty.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from colonnade.report.schema_fit import Fit
from colonnade.report.schema_parts import Amount, Clients, Moments, Quality, Sealed, Value
from colonnade.report.schema_results import Contribution, Evaluation

FORMAT = "colonnade report"
FIT_FORMAT = "colonnade fit report"
VERSION = 1

Setting = int | float | str | bool | None


class Spend(Value, frozen=True):
    """What may be spent at most, and what was."""

    max: Amount
    spent: Amount


class JobSpend(Spend, frozen=True):
    """The same of a job alone, of bounds bought before it, and of both; None where not known."""

    bounds: Amount | None = None
    total: Spend | None = None

    @property
    def promised(self) -> Spend:
        """What a promise covers: bounds and job; the job alone if bounds are not known."""
        return self if self.total is None else self.total

    @property
    def bought(self) -> Amount | None:
        """What bounds cost, if they cost anything."""
        return self.bounds if self.bounds is not None and self.bounds.units else None


class LabelSpend(JobSpend, frozen=True):
    """What the label costs; ``who`` says whose releases depend on it."""

    who: str = ""


class KindSpend(Value, frozen=True):
    """What a party spent on one kind of release."""

    kind: str
    releases: int
    spent: Amount


class PartySpend(JobSpend, frozen=True, kw_only=True):
    """What a party promised and spent; cap and ledger are None where it did not report them."""

    party: str
    cap: Amount | None = None
    ledger_spent: Amount | None = None
    by_kind: tuple[KindSpend, ...] = ()


class RoundSpend(Value, frozen=True):
    """Units charged in one round, by party: not cumulative."""

    round: int
    spent: dict[str, int]


class Privacy(Value, frozen=True):
    """What is promised to whom, and what it cost."""

    delta: float
    statement: str
    bounds_note: str
    joint: JobSpend
    label: LabelSpend
    parties: tuple[PartySpend, ...]
    by_round: tuple[RoundSpend, ...]


class UplinkRow(Value, frozen=True):
    """Bytes of one round, party and kind."""

    round: int
    party: str
    kind: str
    payload_bytes: int
    predicted_bytes: int
    wire_bytes: int
    messages: int
    retry_bytes: int


class ClientUplink(Value, frozen=True):
    """What each client sent, by party in its clients' own order; an answer has ``body_bytes``."""

    kind: str
    body_bytes: int
    answers: dict[str, tuple[int, ...]]
    payload_bytes: dict[str, tuple[int, ...]]
    intercept_bytes: int = 0
    sums: bool = False


class Uplink(Value, frozen=True):
    """Bytes from the parties to the coordinator; the totals are the sums of the rows."""

    payload_bytes: int
    predicted_bytes: int
    wire_bytes: int
    retry_bytes: int
    rows: tuple[UplinkRow, ...]
    predicted_most_bytes: int = 0
    clients: ClientUplink | None = None


class ModelLabel(Value, frozen=True):
    """The label, its bounds, and the texts that they stand for, if it was read from texts."""

    name: str
    low: float
    high: float
    levels: tuple[str, ...] = ()


class ModelFeature(Value, frozen=True):
    """A feature of the model."""

    party: str
    name: str
    low: float
    high: float
    fill: float
    coef: float
    coef_scaled: float
    group: str = ""  # the category that it is a level of


class ModelEncoding(Value, frozen=True):
    """How a raw column became features."""

    party: str
    name: str
    kind: dict[str, Any]


class Model(Value, frozen=True):
    """The object of ``model.json``."""

    loss: str
    label: ModelLabel
    intercept: float
    intercept_scaled: float
    features: tuple[ModelFeature, ...]
    encodings: tuple[ModelEncoding, ...] = ()


class PathPoint(Value, frozen=True):
    """The scaled coefficients after one round, by party, in the model's order."""

    round: int
    coef: dict[str, tuple[float, ...]]


class Unused(Value, frozen=True):
    """A party that paid for a model which uses none of its features."""

    party: str
    spent: Amount
    note: str


class FeaturePerDeviation(Value, frozen=True):
    """A feature's deviation in its unit, and its coefficient for one; None if noise hides it."""

    party: str
    name: str
    deviation: float | None
    coef: float | None


class PerDeviation(Value, frozen=True):
    """Coefficients on the scale of released deviations, in the model's order."""

    features: tuple[FeaturePerDeviation, ...]


class Rounds(Value, frozen=True):
    """How far the job came."""

    planned: int
    done: int


class Learned(Value, frozen=True):
    """What somebody learns."""

    who: str
    what: str


class Prediction(Value, frozen=True):
    """Rows that were scored for one party."""

    model: str
    receiver: str
    purpose: str
    parties: tuple[str, ...]
    middle: tuple[str, ...]
    rows: int
    delivered: bool
    promise: str
    learned: tuple[Learned, ...]


class Report(Value, frozen=True):
    """All that a report says.

    Examples
    --------
    >>> Report("ab12", "cost", "squared", private=True, model=None).over_clients
    False
    """

    job_id: str
    name: str
    loss: str
    private: bool
    model: Model | None
    method: str = "fit"
    state: str = "finished"
    reason: str = ""
    purpose: str = ""
    requested_by: str = ""
    submitted_at: str = ""
    ended_at: str | None = None
    seconds: float = 0.0
    n_rows: int = 0  # of a job over columns
    n_clients: int = 0  # of a job over clients
    labels: str = ""
    rounds: Rounds = Rounds(planned=0, done=0)
    parameters: dict[str, Setting] = msgspec.field(default_factory=dict)
    privacy: Privacy | None = None
    uplink: Uplink | None = None
    per_deviation: PerDeviation | None = None
    path: tuple[PathPoint, ...] = ()
    unused: tuple[Unused, ...] = ()
    quality: Quality | None = None
    clients: Clients | None = None
    simulation: dict[str, Setting] = msgspec.field(default_factory=dict)
    moments: Moments | None = None
    sealed: Sealed | None = None
    contribution: dict[str, Contribution] | None = None
    evaluation: Evaluation | None = None
    fit: Fit | None = None
    prediction: Prediction | None = None

    @property
    def over_clients(self) -> bool:
        """Whether the unit of privacy is a client and not a row."""
        return bool(self.n_clients)

    @property
    def parties(self) -> list[str]:
        """All parties, in the order of the job."""
        names = [party.party for party in self.privacy.parties] if self.privacy else []
        names += [row.party for row in self.uplink.rows] if self.uplink else []
        if not self.over_clients and self.fit is None and self.model is not None:
            names += [feature.party for feature in self.model.features]
        return list(dict.fromkeys(names))


def read(document: Mapping[str, Any]) -> Report:
    """Return the report of a job or of a fit from the object of its ``report.json``.

    Examples
    --------
    >>> document = {"format": FORMAT, "version": VERSION, "job_id": "ab12", "name": "cost"}
    >>> document |= {"loss": "squared", "private": True, "model": None, "state": "cancelled"}
    >>> read(document).state
    'cancelled'
    """
    if document.get("version") != VERSION or document.get("format") not in (FORMAT, FIT_FORMAT):
        raise ValueError(f"a report has format {FORMAT!r} or {FIT_FORMAT!r} and version {VERSION}")
    if document["format"] == FORMAT:
        return msgspec.convert(document, Report)
    found = msgspec.convert(document, Fit)
    shared = {key: document[key] for key in ("job_id", "name", "loss", "n_rows", "model")}
    shared["moments"] = document.get("moments")
    whole = msgspec.convert(shared | {"private": found.privacy.private}, Report)
    return msgspec.structs.replace(whole, fit=found)
