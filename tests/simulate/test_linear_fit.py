"""The non-private reference: the optimum, of all rows, of tables of any width."""

import numpy as np
import pytest

from colonnade.core.arrays import FloatArray, Int16Array
from colonnade.core.fixedpoint import GRID
from colonnade.methods.problem import Loss
from colonnade.simulate.data.synthetic import make
from colonnade.simulate.evaluation import linear_fit
from colonnade.simulate.evaluation.linear_fit import fit_linear
from colonnade.simulate.evaluation.references import nonprivate
from colonnade.simulate.inprocess.vertical import auc, quality, r2


def table(n_rows: int, n_features: int, loss: Loss, *, seed: int) -> tuple[Int16Array, FloatArray]:
    made = make(n_rows, (n_features,), informative=4, correlation=0.3, seed=seed, loss=loss).data()
    label = made.label / GRID
    return made.columns, np.sign(label) if loss is Loss.LOGISTIC else label


@pytest.mark.parametrize("n_features", [8, linear_fit._WHOLE + 60], ids=["narrow", "wide"])
@pytest.mark.parametrize("loss", [Loss.SQUARED, Loss.LOGISTIC])
def test_no_coefficient_can_be_moved_to_a_better_place(loss: Loss, n_features: int) -> None:
    columns, y = table(1500, n_features, loss, seed=3)
    design, classes = linear_fit._Design.of(columns), loss is Loss.LOGISTIC
    objective = linear_fit._Objective(y, classes)
    l1 = 0.05 * linear_fit._most(design, objective)
    start = linear_fit._Model(np.zeros(n_features), objective.constant())
    model = linear_fit._minimise(design, objective, l1, start)
    slopes, _ = objective.slopes(model.constant + design.predict(model.coef))
    gradient, used = design.products(slopes), model.coef != 0.0
    assert 4 <= used.sum() <= n_features
    # Steps end at a gain of 1e-6 of the loss; its curvature is of order 1, so a coefficient is
    # within sqrt(2e-6) = 0.0014 of the optimum, and so is the gradient.
    assert np.abs(gradient[used] + l1 * np.sign(model.coef[used])).max() < 0.0014
    assert np.abs(gradient[~used]).max(initial=0.0) < l1 + 0.0014
    assert abs(float(slopes.mean())) < 0.0014


@pytest.mark.parametrize("loss", [Loss.SQUARED, Loss.LOGISTIC])
def test_rows_in_the_order_of_their_labels_are_all_fitted(loss: Loss) -> None:
    columns, y = table(40_000, 6, loss, seed=4)
    order = np.argsort(y, kind="stable")
    score = auc if loss is Loss.LOGISTIC else r2
    mixed, ordered = (
        score(y[rows], fit_linear(c, y[rows], classes=loss is Loss.LOGISTIC, seed=0).predict(c))
        for rows in (np.arange(y.size), order)
        for c in (columns[:, rows],)
    )
    assert ordered == pytest.approx(mixed, abs=1e-4)  # the penalties may differ by a step
    assert ordered > 0.75


def test_a_wide_table_costs_no_matrix_of_all_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(3000, (1000, 1000), informative=4, correlation=0.2, seed=5)
    sizes, bordered = [], linear_fit._bordered

    def noted(rows: FloatArray, bends: FloatArray) -> FloatArray:
        sizes.append(len(rows))
        return bordered(rows, bends)

    monkeypatch.setattr(linear_fit, "_bordered", noted)
    data = made.data()
    found = quality(data, nonprivate(data, Loss.SQUARED), Loss.SQUARED)
    assert found > quality(data, made.truth(), Loss.SQUARED) - 0.02
    assert max(sizes) < 1000  # of 2000, past the penalty that is best
    assert len(sizes) < 80  # so many passes over the columns


def test_a_label_of_one_class_and_constant_columns_have_a_fit() -> None:
    columns = np.stack([np.full(50, 7), np.arange(50)]).astype(np.int16)
    classes = fit_linear(columns, np.ones(50), classes=True, seed=0)
    assert (classes.predict(columns) > 5.0).all()
    plain = fit_linear(columns, np.full(50, 3.0), classes=False, seed=0)
    np.testing.assert_allclose(plain.predict(columns), 3.0)
    y = np.linspace(1.0, 99.0, 50)
    assert r2(y, fit_linear(columns, y, classes=False, seed=0).predict(columns)) > 0.999


def test_the_loss_left_out_tells_which_columns_serve_better() -> None:
    x = np.random.default_rng(6).uniform(-1.0, 1.0, 4000)
    whole, clipped = (
        np.rint(np.clip(x, -limit, limit) / limit * GRID).astype(np.int16)[None]
        for limit in (1.0, 0.1)
    )
    losses = [fit_linear(c, x, classes=False, seed=1).left_out_loss for c in (whole, clipped)]
    assert losses[0] < 0.01 * losses[1]
