"""The types of a report's results: what parties contributed, and what was measured."""

from colonnade.report.schema_parts import Amount, Value


class Contribution(Value, frozen=True):
    """What a party's columns explain alone, and all others without them; standard errors.

    ``lost`` is what the job's model explains beyond the latter. Of classes also the AUC. What rests
    on columns of several parties is None where the job bought nothing about what they have in
    common.
    """

    alone: float
    without: float | None = None
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
    """A released score on held-out people, its standard error and its price.

    ``spent`` is what all evaluations of the job's model have cost the party, to add to the job's
    own; None where they are counted in the report's other amounts.
    """

    metric: str
    value: float
    error: float
    epsilon: float
    spent: Amount | None = None
    party: str = ""
    n_rows: int = 0
    log_loss: float | None = None
    log_loss_error: float | None = None
    calibration: tuple[CalibrationGroup, ...] = ()
