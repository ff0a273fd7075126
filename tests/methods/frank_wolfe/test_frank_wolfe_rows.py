"""What meets data in a vertical job: the residual's sensitivity, the codes, the bytes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.core.fixedpoint import GRID
from colonnade.linear.kernels import score
from colonnade.linear.sums import moments_mechanism, sums
from colonnade.methods.column_moments import clipped_normal, moments_code, moments_of, shared_column
from colonnade.methods.frank_wolfe.residual import (
    COEF_UNIT,
    MAX_COEF,
    MAX_Q,
    SCORE_SENSITIVITY,
    WEIGHT_UNIT,
    TaskParameters,
    residual,
)
from colonnade.methods.frank_wolfe.spec import decode_choice, encode_choice
from colonnade.privacy.accounting import units_down
from colonnade.sketching.dense import HadamardSketch
from colonnade.sketching.packing import ShareCode, share_mechanism
from colonnade.sketching.sparse import Sketch, SparseSketch

N_ROWS, DIM = 60, 16

sketches: list[Sketch] = [
    SparseSketch(b"v", N_ROWS, DIM, 1),
    SparseSketch(b"v", N_ROWS, DIM, 4),
    HadamardSketch(b"v", N_ROWS, 64),
]
extremes = st.one_of(st.integers(-MAX_COEF, MAX_COEF), st.sampled_from([0, MAX_COEF, -MAX_COEF]))
wild = st.one_of(st.integers(-MAX_Q, MAX_Q), st.sampled_from([0, MAX_Q, -MAX_Q]))


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    row=st.integers(0, N_ROWS - 1),
    coef=st.lists(extremes, min_size=3, max_size=3),
    q=st.lists(wild, min_size=64, max_size=64),
    weight=st.integers(0, WEIGHT_UNIT),
    clip=st.one_of(st.integers(1, 2**40), st.just(1)),
    offset=extremes,
    which=st.integers(0, 2),
    labelled=st.booleans(),
)
def test_no_input_of_a_coordinator_raises_the_sensitivity(
    seed: int,
    row: int,
    coef: list[int],
    q: list[int],
    weight: int,
    clip: int,
    offset: int,
    which: int,
    labelled: bool,
) -> None:
    draw, sketch = np.random.default_rng(seed), sketches[which]
    one = draw.choice([-GRID, 0, GRID], (4, N_ROWS)).astype(np.int16)
    two = one.copy()
    two[:, row] = draw.choice([-GRID, GRID], 4)  # the label changes too
    public = TaskParameters(np.array(coef), np.array(q[: sketch.dim]), weight, clip, offset)
    found = []
    for side in (one, two):
        rows = residual(side[:3], side[3] if labelled else None, public, sketch)
        assert int(np.abs(rows).max()) <= GRID
        found.append((rows, score(side[:3], rows)))
    changed = np.flatnonzero(found[0][0] != found[1][0])
    assert set(changed.tolist()) <= {row}  # nothing of other rows depends on this one
    assert int(np.abs(found[1][1] - found[0][1]).max()) <= SCORE_SENSITIVITY


def test_the_sensitivity_is_attained() -> None:
    one = np.full((2, N_ROWS), GRID, np.int16)
    two = one.copy()
    two[0, 5] = -GRID
    public = TaskParameters(np.array([0]), np.zeros(DIM, np.int64), 0, 1)
    scores = [
        score(side[:1], residual(side[:1], side[1], public, sketches[0])) for side in (one, two)
    ]
    assert abs(int(scores[1][0] - scores[0][0])) == SCORE_SENSITIVITY


@pytest.mark.parametrize(
    "wrong",
    [
        {"weight": -1},
        {"weight": WEIGHT_UNIT + 1},
        {"clip": 0},
        {"clip": -5},
        {"clip": 2**40 + 1},
        {"coef": np.array([MAX_COEF + 1])},
        {"q": np.array([-MAX_Q - 1])},
        {"q": np.array([-(2**63)])},
        {"offset": MAX_COEF + 1},
        {"offset": -MAX_COEF - 1},
    ],
)
def test_a_task_outside_its_bounds_is_refused(wrong: dict[str, object]) -> None:
    right: dict[str, object] = {
        "coef": np.zeros(1, np.int64),
        "q": np.zeros(1, np.int64),
        "weight": 0,
        "clip": 1,
    }
    TaskParameters(**right)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"weight|clip|large"):
        TaskParameters(**{**right, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("rho", [0.001, 0.05, 3.0])
@pytest.mark.parametrize("n_rows", [100, 10**6])
def test_a_share_survives_its_code_up_to_half_a_step(rho: float, n_rows: int) -> None:
    sketch = SparseSketch(b"c", n_rows, 256)
    mechanism = share_mechanism(sketch, units_down(rho))
    code = ShareCode.of(sketch, n_rows, mechanism)
    spread = math.sqrt(mechanism.sigma2 + n_rows * GRID**2 / 256)
    values = np.rint(np.random.default_rng(1).normal(0, spread, 256)).astype(np.int64)
    body = code.encode(values)
    assert len(body) == code.n_bytes
    assert int(np.abs(code.decode(body) - values).max()) <= code.step // 2 + 1


def test_the_offset_moves_every_row_by_the_same() -> None:
    columns = np.zeros((1, N_ROWS), np.int16)
    zeros = np.zeros(DIM, np.int64)
    public = TaskParameters(np.array([0]), zeros, 0, 2**20, offset=COEF_UNIT // 4)
    rows = residual(columns, None, public, sketches[0])
    assert rows.tolist() == [GRID // 4] * N_ROWS


@pytest.mark.parametrize("count", [1, 16])
def test_sums_survive_their_code_up_to_half_a_step(count: int) -> None:
    n_rows = 10**5
    mechanism = moments_mechanism(count, units_down(0.0005))
    code = moments_code(count, n_rows, mechanism)
    extremes = np.resize([n_rows * GRID, -n_rows * GRID, 12345], 2 * count)
    body = code.encode(extremes)
    assert len(body) == code.n_bytes <= 4 * count
    assert int(np.abs(code.decode(body) - extremes).max()) <= code.step // 2 + 1


def test_sums_of_squares_come_at_no_extra_price() -> None:
    # |(s, s^2/G) - (t, t^2/G)|^2 in integers, for every s near the ends and a sample of all t.
    draw = np.random.default_rng(0)
    ends = np.concatenate([np.arange(GRID - 300, GRID + 1), np.arange(-GRID, -GRID + 301)])
    s = np.concatenate([ends, draw.integers(-GRID, GRID + 1, 2000)]).astype(np.int64)
    t = np.concatenate([ends, draw.integers(-GRID, GRID + 1, 2000)]).astype(np.int64)
    first = s[:, None] - t[None, :]
    second = (s**2 // GRID)[:, None] - (t**2 // GRID)[None, :]
    assert int((first**2 + second**2).max()) == (2 * GRID) ** 2
    assert moments_mechanism(3, units_down(0.1)).l2_sensitivity2 == 3 * (2 * GRID) ** 2


def test_moments_are_those_of_the_column_and_fall_back_where_noise_rules() -> None:
    column = np.rint(np.random.default_rng(2).normal(0.2, 0.3, 4000) * GRID)
    column = np.clip(column, -GRID, GRID).astype(np.int16)
    exact = np.array(sums(column), np.int64)
    sharp = moments_of(exact, 4000, moments_mechanism(1, units_down(50.0)))
    assert sharp.mean[0] == pytest.approx(column.mean() / GRID, abs=1e-3)
    assert sharp.deviation[0] == pytest.approx(column.std() / GRID, abs=1e-3)
    blurred = moments_of(10**6 * exact, 4000, moments_mechanism(1, units_down(1e-9)))
    assert abs(blurred.mean[0]) < 0.01
    assert 0.3 < blurred.deviation[0] < 0.5


@given(
    mean=st.floats(-1, 1),
    deviation=st.floats(0.05, 1),
    clip=st.floats(0.01, 100),
    seed=st.integers(0, 2**32),
)
def test_a_shared_column_is_row_local_and_within_the_grid(
    mean: float, deviation: float, clip: float, seed: int
) -> None:
    column = np.random.default_rng(seed).integers(-GRID, GRID + 1, 50).astype(np.int16)
    made = shared_column(column, mean, deviation, clip)
    assert int(np.abs(made.astype(int)).max()) <= GRID
    column[7] = -GRID
    again = shared_column(column, mean, deviation, clip)
    assert set(np.flatnonzero(made != again).tolist()) <= {7}


@pytest.mark.parametrize("clip", [0.3, 0.7, 1.0, 2.0])
def test_the_moments_of_a_clipped_normal_are_right(clip: float) -> None:
    z = np.random.default_rng(5).standard_normal(400_000)
    u = np.clip(z / clip, -1, 1)
    variance, covariance = clipped_normal(clip)
    # Standard errors are below 1 / sqrt(400000) times a deviation of at most 2: 5 of them.
    assert variance == pytest.approx(float(u.var()), abs=0.016)
    assert covariance == pytest.approx(float(z @ u) / z.size, abs=0.016)


def test_values_beyond_the_code_saturate_instead_of_wrapping() -> None:
    code = ShareCode(dim=4, step=10, width=6)
    decoded = code.decode(code.encode(np.array([10**9, -(10**9), 310, -320])))
    assert decoded.tolist() == [310, -320, 310, -320]


def test_the_usual_share_has_six_bits_a_value() -> None:
    # Noise far above the signal, as at usual budgets: +-6 deviations of a quarter deviation each.
    sketch = SparseSketch(b"c", 10**5, 2048)
    code = ShareCode.of(sketch, 10**5, share_mechanism(sketch, units_down(0.001)))
    assert code.width == 6
    assert code.n_bytes == 2048 * 6 // 8


@pytest.mark.parametrize("size", [0, 11, 13])
def test_a_share_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="12"):
        ShareCode(dim=16, step=1, width=6).decode(bytes(size))


@given(feature=st.integers(0, 2**20), sign=st.sampled_from([-1, 1]))
def test_a_choice_round_trips(feature: int, sign: int) -> None:
    assert decode_choice(encode_choice(feature, sign), feature + 1) == (feature, sign)
    with pytest.raises(ValueError, match="no feature"):
        decode_choice(encode_choice(feature, sign), feature)
