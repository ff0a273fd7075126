"""A fitted linear model: what it says, as a file and as predictions.

Training sees each value clipped to its public bounds, centred on their middle and divided by
their half width, rounded to a grid, and for a missing value the declared fill, treated alike. So a
model is a list of coefficients on scaled values in ``[-1, 1]``, and predictions see values as
training does (`data.integer_scores`)::

    score = intercept_scaled + sum of coef_scaled * scaled value
    squared:   middle of the label + half width of the label * score
    logistic:  probability of the label's high value = 1 / (1 + exp(-score))
    hinge:     the label's high value if score > 0, else its low value

Everything in a model is a function of releases and of public declarations.
"""

import json
import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.config import convert, parse_json, read_text
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.data.frames import Frame, as_frame, tabulated
from colonnade.data.integer_scores import IntegerScores, add_products
from colonnade.data.model_columns import (
    Input,
    ModelEncoding,
    ModelFeature,
    ModelLabel,
    inputs_of,
    match,
)
from colonnade.data.model_file import LossName, ModelFile, plain, without_coef

if TYPE_CHECKING:
    from colonnade.data.fitted import FittedClassifier, FittedRegressor

__all__ = [
    "FORMAT",
    "VERSION",
    "Input",
    "LinearModel",
    "ModelEncoding",
    "ModelFeature",
    "ModelLabel",
    "load_model",
]

FORMAT, VERSION = "colonnade model", 3
_READABLE = (2, 3)  # before 3 there were numbers only

# Both kinds of coefficient are in the file; rounding in another program's algebra may differ.
_AGREEMENT = 1e-9


@dataclass(frozen=True, slots=True)
class LinearModel:
    """Hold a fitted model.

    Parameters
    ----------
    intercept_scaled
        Score of a row whose values all lie in the middle of their bounds.
    private
        Whether the noise was exact and secret; False for simulations with other noise.
    encodings
        How raw columns become features, unless they are numbers of the same name.

    Examples
    --------
    >>> age = ModelFeature("hospital", "age", low=0.0, high=100.0, fill=50.0, coef_scaled=0.5)
    >>> label = ModelLabel("cost", low=0.0, high=1000.0)
    >>> model = LinearModel("ab12", "squared", label, 0.0, (age,), private=True)
    >>> model.predict({"age": [50.0, 100.0, 200.0, float("nan")]})
    array([500., 750., 750., 500.])
    >>> model.coefficients()["coef"].tolist()  # a data frame
    [5.0]
    """

    job_id: str
    loss: LossName
    label: ModelLabel
    intercept_scaled: float
    features: tuple[ModelFeature, ...]
    private: bool
    encodings: tuple[ModelEncoding, ...] = ()

    def __post_init__(self) -> None:
        if self.loss not in ("squared", "logistic", "hinge"):
            raise ValueError("loss must be 'squared', 'logistic' or 'hinge'")
        names = Counter(feature.full_name for feature in self.features)
        if repeated := [name for name, count in names.items() if count > 1]:
            raise ValueError(f"two features are called {repeated[0]!r}")
        columns: tuple[ModelLabel | ModelFeature, ...] = (self.label, *self.features)
        for column in columns:
            try:
                Bounds(column.low, column.high)
            except ValueError as error:
                raise ValueError(f"{column.name!r}: {error}") from None
        if not all(math.isfinite(number) for number in (*self.coef, self.intercept)):
            raise ValueError("a coefficient or the intercept is not finite")
        if not all(math.isfinite(feature.fill) for feature in self.features):
            raise ValueError("a fill is not finite")

    @property
    def coef(self) -> tuple[float, ...]:
        """Coefficients in the users' units, in the order of ``features``.

        With ``m`` the middles and ``h`` the half widths, the score of values within bounds is
        ``b + sum c_j (x_j - m_j) / h_j``, so that by algebra alone ``coef_j = s c_j / h_j``, where
        ``s`` is the label's half width for squared error, else 1.
        """
        return tuple(self._scale * (f.coef_scaled / f.bounds.half_width) for f in self.features)

    @property
    def intercept(self) -> float:
        """Prediction (for classes: score) at zero in the users' units, were zero within bounds.

        With ``t = sum c_j m_j / h_j`` it is ``m_y + s (b - t)`` for squared error, else ``b - t``.
        """
        return self._offset + self._scale * (self.intercept_scaled - sum(self._shifts()))

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The raw columns that features are made of, in the order of the features."""
        return inputs_of(self.features, self.encodings)

    def match(
        self, names: Collection[str], *, origin: str = "the table", there: str = ""
    ) -> dict[str, Input]:
        """Find the raw columns of a joined table that prediction needs.

        A column is called ``party.feature``, or plainly ``feature`` if no other name can be meant;
        the name in the party's source does too. Columns whose features all have a coefficient of
        zero are not needed and not returned. ``there`` says, for the message, which columns there
        are.
        """
        return match(self.inputs, names, origin=origin, there=there)

    def predict(self, frame: Frame, *, n_rows: int | None = None) -> FloatArray:
        """Return a prediction for each row of a joined table.

        Texts and dates are read as the model's encodings say, a missing value becomes the feature's
        fill, and values are clipped to the bounds, as in training.

        Parameters
        ----------
        frame
            A pandas or Polars frame, an Arrow table, or a mapping from names to arrays. Columns are
            found by name, as ``match`` does; others are ignored.
        n_rows
            Needed only when the table has no column of the model and does not know its length.

        Returns
        -------
        FloatArray
            For squared error in the label's units (it may pass the label's bounds); for logistic
            the probability that the label has its high value; for hinge its high or low value.
        """
        return self.from_score(self.decision_function(frame, n_rows=n_rows))

    def predict_proba(self, frame: Frame, *, n_rows: int | None = None) -> FloatArray:
        """Return the probabilities of the label's low and high value, shape ``(n_rows, 2)``."""
        if self.loss != "logistic":
            raise BadInput(f"a model with {self.loss} loss predicts no probabilities")
        high = self.predict(frame, n_rows=n_rows)
        return np.column_stack([1.0 - high, high])

    def decision_function(self, frame: Frame, *, n_rows: int | None = None) -> FloatArray:
        """Return the score of each row, in half widths of the label or as log-odds."""
        names = {name for each in self.inputs for name in (*each.plain_names, *each.full_names)}
        columns, n_rows = tabulated(frame, names, n_rows)
        integers = IntegerScores.of(self)
        coef = dict(zip((f.full_name for f in self.features), integers.coef, strict=True))
        total = np.zeros(n_rows, np.int64)
        for name, needed in self.match(columns).items():
            for feature, column in needed.columns(columns[name], what=f"column {name!r}"):
                add_products(total, column[None, :], [coef[feature.full_name]])
        return integers.score(total)

    def from_score(self, score: FloatArray) -> FloatArray:
        """Return the predictions that belong to scores, as `predict` does."""
        if self.loss == "logistic":
            tail = np.exp(-np.abs(score))  # never overflows
            return np.where(score >= 0.0, 1.0, tail) / (1.0 + tail)
        if self.loss == "hinge":
            return np.where(score > 0.0, self.label.high, self.label.low)
        return self._offset + self._scale * score

    def to_sklearn(self) -> "FittedRegressor | FittedClassifier":
        """Return a fitted estimator of scikit-learn, for pipelines and metrics."""
        from colonnade.data.fitted import fitted  # noqa: PLC0415 (scikit-learn is an extra)

        return fitted(self)

    def coefficients(self) -> Any:
        """Return the coefficients as a data frame; as a dict of columns where pandas is absent."""
        rows = [
            {"party": each.party, "feature": each.name, "coef": coef, **plain(each)}
            for each, coef in zip(self.features, self.coef, strict=True)
        ]
        names = ("party", "feature", "group", "coef", "coef_scaled", "low", "high", "fill")
        return as_frame({name: [row[name] for row in rows] for name in names})

    def to_object(self) -> dict[str, Any]:
        """Return the model as plain values for JSON."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "job_id": self.job_id,
            "private": self.private,
            "loss": self.loss,
            "label": plain(self.label),
            "intercept_scaled": float(self.intercept_scaled),
            "intercept": float(self.intercept),
            "features": [
                plain(feature) | {"coef": float(coef)}
                for feature, coef in zip(self.features, self.coef, strict=True)
            ],
            "encodings": json.loads(msgspec.json.encode(self.encodings)),
        }

    def to_json(self) -> str:
        """Return the text of ``model.json``; floats read back exactly."""
        return json.dumps(self.to_object(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str, *, origin: str = "model.json") -> "LinearModel":
        """Parse the text of ``model.json``; ``origin`` names the file in errors."""
        document = parse_json(text, origin=origin, expected="the model.json of a job")
        return cls.from_object(document, origin=origin)

    @classmethod
    def from_object(cls, document: object, *, origin: str = "model.json") -> "LinearModel":
        """Read a model from plain values, refusing all that is unknown, missing or at odds."""
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise BadInput(f"{origin}: not a Colonnade model; give the model.json of a job")
        if document.get("version") not in _READABLE:
            raise BadInput(f"{origin}: not of version {VERSION}, the newest this program reads")
        file = convert(document, ModelFile, origin=origin, text_dates=True)
        try:
            read = cls(
                job_id=file.job_id,
                loss=file.loss,
                label=file.label,
                intercept_scaled=file.intercept_scaled,
                features=tuple(map(without_coef, file.features)),
                private=file.private,
                encodings=file.encodings,
            )
        except ValueError as error:
            raise BadInput(f"{origin}: {error}") from None
        coef = [table.coef for table in file.features]
        read._check_agreement(coef, intercept=file.intercept, origin=origin)
        return read

    @property
    def _scale(self) -> float:
        return self.label.bounds.half_width if self.loss == "squared" else 1.0

    @property
    def _offset(self) -> float:
        return self.label.bounds.middle if self.loss == "squared" else 0.0

    def _shifts(self) -> list[float]:
        return [f.coef_scaled * (f.bounds.middle / f.bounds.half_width) for f in self.features]

    def _check_agreement(self, coef: list[float], *, intercept: float, origin: str) -> None:
        for feature, ours, theirs in zip(self.features, self.coef, coef, strict=True):
            if not math.isclose(ours, theirs, rel_tol=_AGREEMENT):
                where = f"{origin}: feature {feature.full_name!r}"
                raise BadInput(f"{where}: 'coef' and 'coef_scaled' disagree; the file was edited")
        terms = (self.intercept_scaled, *self._shifts())
        size = abs(self._offset) + self._scale * sum(abs(term) for term in terms)
        if abs(self.intercept - intercept) > _AGREEMENT * size:
            raise BadInput(f"{origin}: 'intercept' and the rest disagree; the file was edited")


def load_model(path: str | Path) -> LinearModel:
    """Read the ``model.json`` at ``path``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> model = LinearModel("ab", "hinge", ModelLabel("ill", 0.0, 1.0), 0.0, (), private=True)
    >>> with TemporaryDirectory() as folder:
    ...     _ = (path := Path(folder, "model.json")).write_text(model.to_json())
    ...     load_model(str(path)) == model
    True
    """
    return LinearModel.from_json(read_text(Path(path)), origin=str(path))
