"""What a fit at one site adds to a report."""

from typing import Any

from colonnade.report.schema_parts import (
    Value,
)


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


class FitPenalty(Value, frozen=True):
    """A fit's penalty: elastic net within a box, or a registered one by its name."""

    l1: float = 0.0
    l2: float = 0.0
    box: float | None = None
    name: str = ""
    strength: float = 0.0


class Fit(Value, frozen=True):
    """What only the report of a fit at one site says."""

    penalty: FitPenalty
    intercept: bool
    settings: dict[str, Any]
    privacy: FitPrivacy
    ledger: FitLedger | None
    path: Trail
