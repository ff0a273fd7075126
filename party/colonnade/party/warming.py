"""Load the compiled code that a first answer needs, while the party still dials."""

import numpy as np

from colonnade.optim.kernels import score
from colonnade.optim.sketch import SparseSketch
from colonnade.optim.vertical.moments import shared_column, sums
from colonnade.optim.vertical.residual import SCORE_SENSITIVITY, Public, residual
from colonnade.privacy.mechanisms import DiscreteGaussian, SignedSelection
from colonnade.privacy.sampling import OsNoise

_ROWS = 256


def warm() -> None:
    """Run each step once on a table of zeros; nothing of it is kept or sent."""
    features = np.zeros((2, _ROWS), np.int16)
    features.setflags(write=False)  # as mapped tables are: other arrays would load other code
    label = features[0]
    sketch = SparseSketch(bytes(32), _ROWS, 16, 1)
    public = Public(np.ones(2, np.int64), np.ones(16, np.int64), weight=1, clip=1)
    scores = score(features, residual(features, label, public, sketch))
    noise = OsNoise()
    SignedSelection(2 * SCORE_SENSITIVITY, SCORE_SENSITIVITY).perturb(scores, noise)
    sums(label)
    column = shared_column(label, 0.0, 1.0, 1.0)
    DiscreteGaussian(100, 1).perturb(sketch.apply(column.reshape(1, -1))[0], noise)
