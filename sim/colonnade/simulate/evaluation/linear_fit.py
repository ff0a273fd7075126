"""Linear and logistic regression with an L1 penalty and no privacy, for tables of any width.

Minimise the mean loss plus ``l1 * |coef|_1`` over standardised columns, the constant unpenalised,
by Newton steps on a working set of columns. It grows by those that violate the conditions of
optimality most, so that a wide table costs passes over its columns and no Gram matrix of them all
(Friedman, Hastie and Tibshirani 2010). The penalty is chosen on a fifth of the rows.
"""

from dataclasses import dataclass, replace

import numpy as np

from colonnade.core.arrays import AnyArray, FloatArray, Int16Array, IntArray
from colonnade.core.jit import njit

# Above this many values the rows are a random part: the working set is copied as floats.
_MAX_VALUES = 100_000_000
# Values and least rows that the choice of the penalty looks at.
_CHOICE_VALUES, _CHOICE_ROWS = 2_000_000, 5_000
_SHARES = np.geomspace(0.7, 1e-4, 18)  # penalties, of the one that leaves no coefficient
_HELPS, _PATIENCE = 1e-4, 2  # penalties in a row that gain less than this part end the search
_WHOLE = 256  # a table of so many columns is worked on whole
_MORE = 128  # columns that a step adds to the working set of a wider one
_STEPS, _SWEEPS = 50, 200
_TOLERANCE = 1e-6  # least gain of a step, of the loss of the constant alone
_LEAST_STEP = 1e-3
_BLOCK = 1 << 18  # values that are converted at a time: they stay in cache


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """A linear function of columns as they are on the grid.

    Parameters
    ----------
    left_out_loss
        Mean loss on the rows that the penalty was chosen on, of the model that was fitted without
        them: it compares fits of the same label and seed.
    """

    coef: FloatArray
    constant: float
    left_out_loss: float

    def predict(self, columns: Int16Array) -> FloatArray:
        """Return the function's values, shape ``(n_rows,)``."""
        found = np.full(columns.shape[1], self.constant)
        for feature in np.flatnonzero(self.coef):
            found += self.coef[feature] * columns[feature]
        return found


def fit_linear(columns: Int16Array, y: FloatArray, *, classes: bool, seed: int) -> LinearFit:
    """Fit all rows, or where there are very many a random part of them.

    Parameters
    ----------
    columns
        Shape ``(n_features, n_rows)``.
    y
        The label of at least two rows; +-1 with ``classes``.
    seed
        Of the order in which rows are drawn.
    """
    n_features, n_rows = columns.shape
    order = np.random.default_rng(seed).permutation(n_rows)
    rows = order[: _MAX_VALUES // min(n_features, _WHOLE)]
    if rows.size < n_rows:
        columns, y = columns[:, np.sort(rows)], y[np.sort(rows)]
        order = np.random.default_rng(seed).permutation(rows.size)
    looked_at = order[: max(_CHOICE_ROWS, _CHOICE_VALUES // n_features)]
    cut = max(1, looked_at.size // 5)
    design, objective = _Design.of(columns), _Objective(y, classes)
    loss, share, model = _choose(columns, objective, looked_at[cut:], looked_at[:cut])
    # What is best falls with the square root of the number of rows.
    l1 = share * _most(design, objective) * ((looked_at.size - cut) / y.size) ** 0.5
    model = _minimise(design, objective, l1, model)
    coef = model.coef / design.scale
    return LinearFit(coef, model.constant - float(coef @ design.mean), loss)


@dataclass(frozen=True, slots=True, eq=False)
class _Design:
    """Columns on the grid, taken as having mean 0 and variance 1 without being copied."""

    columns: Int16Array
    mean: FloatArray
    scale: FloatArray  # standard deviations; infinite where a column is constant

    @classmethod
    def of(cls, columns: Int16Array) -> "_Design":
        mean, scale = np.empty(len(columns)), np.empty(len(columns))
        for place, column in enumerate(columns):
            mean[place], scale[place] = column.mean(dtype=np.float64), column.std(dtype=np.float64)
        scale[scale == 0.0] = np.inf
        return cls(columns, mean, scale)

    @property
    def n_rows(self) -> int:
        n_rows: int = self.columns.shape[1]
        return n_rows

    def products(self, residual: FloatArray) -> FloatArray:
        """Return the mean over rows of every column times ``residual``."""
        found, at_once = np.empty(len(self.columns)), max(1, _BLOCK // self.n_rows)
        for first in range(0, len(found), at_once):
            part = slice(first, first + at_once)
            found[part] = self.columns[part].astype(np.float64) @ residual
        found -= self.mean * float(residual.sum())
        return found / (self.scale * self.n_rows)

    def chosen(self, features: IntArray) -> AnyArray:
        """Return some of the columns as 32-bit floats."""
        found = np.empty((features.size, self.n_rows), np.float32)
        for place, feature in enumerate(features.tolist()):
            found[place] = (self.columns[feature] - self.mean[feature]) / self.scale[feature]
        return found

    def predict(self, coef: FloatArray) -> FloatArray:
        """Return the sum of all columns, each times its coefficient."""
        found = np.zeros(self.n_rows)
        for feature in np.flatnonzero(coef):
            weight = coef[feature] / self.scale[feature]
            found += weight * self.columns[feature] - weight * self.mean[feature]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Objective:
    """The mean loss of a label: half squares, or with ``classes`` the logistic loss of +-1."""

    y: FloatArray
    classes: bool

    def of(self, rows: IntArray) -> "_Objective":
        return replace(self, y=self.y[rows])

    def value(self, margins: FloatArray) -> float:
        """Return the mean loss."""
        if self.classes:
            return float(np.logaddexp(0.0, -self.y * margins).mean())
        return float(((margins - self.y) ** 2).mean()) / 2.0

    def slopes(self, margins: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the first two derivatives of each row's loss."""
        if not self.classes:
            return margins - self.y, np.ones_like(margins)
        chance = 1.0 / (1.0 + np.exp(np.clip(self.y * margins, -500.0, 500.0)))
        return -self.y * chance, np.maximum(chance * (1.0 - chance), 1e-6)

    def constant(self) -> float:
        """Return the best prediction that is the same for all rows."""
        mean = float(self.y.mean())
        if not self.classes:
            return mean
        bounded = min(max(mean, -0.999999), 0.999999)  # one class alone has no best one
        return float(np.log1p(bounded) - np.log1p(-bounded))


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    """A constant and coefficients of standardised columns."""

    coef: FloatArray
    constant: float


def _choose(
    columns: Int16Array, objective: _Objective, fitted: IntArray, left_out: IntArray
) -> tuple[float, float, _Model]:
    """Return the least loss of rows left out, and the penalty and the model that have it.

    The penalty is a share of the one that leaves no coefficient.
    """
    design, own = _Design.of(columns[:, fitted]), objective.of(fitted)
    other, theirs = replace(design, columns=columns[:, left_out]), objective.of(left_out)
    most, model = _most(design, own), _Model(np.zeros(len(columns)), own.constant())
    best = (theirs.value(np.full(left_out.size, model.constant)), 1.0, model)
    in_vain = 0
    for share in _SHARES.tolist():
        model = _minimise(design, own, share * most, model)
        value = theirs.value(model.constant + other.predict(model.coef))
        in_vain = 0 if value < best[0] * (1.0 - _HELPS) else in_vain + 1
        if value < best[0]:
            best = (value, share, model)
        if in_vain == _PATIENCE:
            break
    return best


def _most(design: _Design, objective: _Objective) -> float:
    """Return the least penalty that leaves no coefficient."""
    flat = np.full(design.n_rows, objective.constant())
    return float(np.abs(design.products(objective.slopes(flat)[0])).max())


def _minimise(design: _Design, objective: _Objective, l1: float, model: _Model) -> _Model:
    """Take Newton steps from ``model`` until little is gained."""
    margins = model.constant + design.predict(model.coef)
    value = objective.value(margins) + l1 * float(np.abs(model.coef).sum())
    least = _TOLERANCE * objective.value(np.full(design.n_rows, objective.constant()))
    for _ in range(_STEPS):
        slopes, bends = objective.slopes(margins)
        gradient = design.products(slopes)
        features = _working_set(gradient, model.coef, l1)
        rows = design.chosen(features)
        move = _newton(model, features, l1, _bordered(rows, bends), gradient, slopes.mean())
        moved = move[0] + move[1:] @ rows
        step = 2.0
        gained = -1.0
        while gained < 0.0 and step > _LEAST_STEP:
            step /= 2.0
            coef = model.coef.copy()
            coef[features] += step * move[1:]
            after = objective.value(margins + step * moved) + l1 * float(np.abs(coef).sum())
            gained = value - after
        if gained < 0.0:
            break
        model, margins = _Model(coef, model.constant + step * move[0]), margins + step * moved
        value = after
        if gained <= least:
            break
    return model


def _working_set(gradient: FloatArray, coef: FloatArray, l1: float) -> IntArray:
    """Return the columns with a coefficient and those that most need one."""
    if gradient.size <= _WHOLE:
        return np.arange(gradient.size)
    excess = np.where(coef == 0.0, np.abs(gradient) - l1, -np.inf)
    worst = np.argpartition(excess, -_MORE)[-_MORE:]
    return np.union1d(np.flatnonzero(coef), worst[excess[worst] > 0.0])


def _bordered(rows: AnyArray, bends: FloatArray) -> FloatArray:
    """Return the second derivatives in the constant, which comes first, and the columns."""
    weighted = rows * (bends / bends.size).astype(np.float32)
    gram = np.empty((len(rows) + 1, len(rows) + 1))
    gram[0, 0] = bends.mean()
    gram[0, 1:] = gram[1:, 0] = weighted.sum(axis=1, dtype=np.float64)
    gram[1:, 1:] = weighted @ rows.T
    gram.flat[:: len(gram) + 1] += 1e-6  # columns that say the same, or nothing
    return gram


def _newton(
    model: _Model,
    features: IntArray,
    l1: float,
    gram: FloatArray,
    gradient: FloatArray,
    slope: float,
) -> FloatArray:
    """Return how the constant and ``features`` move to the least of the quadratic model."""
    now = np.concatenate([[model.constant], model.coef[features]])
    target = gram @ now - np.concatenate([[slope], gradient[features]])
    penalty = np.full(now.size, l1)
    penalty[0] = 0.0
    x = now.copy()
    _descend(gram, target, penalty, x, gram @ x, _SWEEPS)
    moved: FloatArray = x - now
    return moved


@njit
def _descend(
    gram: FloatArray,
    target: FloatArray,
    penalty: FloatArray,
    x: FloatArray,
    product: FloatArray,
    sweeps: int,
) -> None:
    """Minimise ``x' G x / 2 - target' x + penalty' |x|`` by coordinates, in place.

    ``product`` is ``G x`` and stays so.
    """
    for _ in range(sweeps):
        largest = 0.0
        for j in range(x.size):
            free = target[j] - product[j] + gram[j, j] * x[j]
            size = max(abs(free) - penalty[j], 0.0)
            change = (size if free > 0.0 else -size) / gram[j, j] - x[j]
            if change != 0.0:
                x[j] += change
                product += change * gram[j]
                largest = max(largest, change * change * gram[j, j])
        if largest < 1e-12:
            return
