"""The source paper's own calibration (Lou and Cheung 2018, Algorithm 2), to compare with.

Benchmark code: floats, nothing is charged or released. Half of (epsilon, delta) goes to the signed
indices, by report-noisy-max with Laplace noise under advanced composition; half to the sketched
features, with Gaussian noise calibrated to the leading singular value of ``J``. Everyone sees the
model through the sketches alone, own block included, and all blocks shrink in every round. Columns
and label are centred exactly, and the best of several numbers of rounds is reported, both in the
method's favour.

``J`` is sparse instead of Gaussian, which serves inner products as well; its noise is that for a
Gaussian matrix of this size, whose leading singular value is about ``1 + sqrt(n / m)``.
"""

import math

import numpy as np

from colonnade.core.fixedpoint import GRID
from colonnade.methods.problem import Loss
from colonnade.simulate.inprocess.vertical import Data, ScaledModel
from colonnade.sketching.sparse import SparseSketch

DIM = 1024


def paper(
    data: Data,
    *,
    epsilon: float,
    delta: float,
    loss: Loss,
    radius: float,
    rounds: int,
    seed: int,
) -> ScaledModel:
    """Fit with the paper's noise; ``radius`` is each party's, whose columns lie side by side."""
    draw, n = np.random.default_rng(seed), data.label.size
    label = data.label / GRID
    scale = 2.0 if loss is Loss.LOGISTIC else 1.0
    asked = rounds * len(data.splits)
    laplace = _laplace_scale(epsilon / 2.0, delta / 2.0, asked=asked, n_rows=n)
    noise = _sketch_noise(epsilon / 2.0, delta / 2.0, asked=asked, n_rows=n)
    sketch = SparseSketch(seed.to_bytes(8, "little"), n, DIM)
    means = data.columns.mean(axis=1) / GRID
    centred = data.columns.astype(np.float32)
    centred /= GRID
    centred -= means[:, None].astype(np.float32)
    target = label - label.mean()
    coef, q = np.zeros(data.columns.shape[0]), np.zeros(DIM)
    for t in range(rounds):
        step = 2.0 / (t + 2.0)
        fixed = np.rint(q * 2.0**20).astype(np.int64)
        residual = (sketch.transpose(fixed) / 2.0**20 - target).astype(np.float32)
        coef, q = (1.0 - step) * coef, (1.0 - step) * q
        for split in data.splits:
            scores = (centred[split[0] : split[-1] + 1] @ residual).astype(np.float64) / n
            noisy = np.concatenate([scores, -scores]) + draw.laplace(0.0, laplace, 2 * len(split))
            best = int(np.argmax(noisy))
            feature, sign = split[best % len(split)], -1.0 if best < len(split) else 1.0
            moved = step * sign * radius / scale
            coef[feature] += moved
            z = sketch.apply(data.columns[feature : feature + 1])[0] / GRID
            q += moved * (z + draw.normal(0.0, noise, DIM))
    coefs = [scale * coef[list(split)] for split in data.splits]
    return ScaledModel(coefs, scale * float(label.mean() - coef @ means))


def _laplace_scale(epsilon: float, delta: float, *, asked: int, n_rows: int) -> float:
    """Return the scale for ``asked`` choices under advanced composition.

    A row moves a gradient by at most ``2 / n`` with values and residual within one: the residual
    is not clipped in the paper, so this understates its noise.
    """
    return 2.0 / n_rows * math.sqrt(8.0 * asked * math.log(1.0 / delta)) / epsilon


def _sketch_noise(epsilon: float, delta: float, *, asked: int, n_rows: int) -> float:
    """Return the noise of a sketch entry: a row moves a column by at most 2."""
    singular = 1.0 + math.sqrt(n_rows / DIM)
    composed = math.sqrt(asked) * math.sqrt(2.0 * (math.log(1.0 / delta) + epsilon)) / epsilon
    return 2.0 * singular * composed
