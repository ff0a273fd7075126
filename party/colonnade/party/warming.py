"""Load the compiled code that a first answer needs, while the party still dials."""

import numpy as np

from colonnade.core.fixedpoint import Bounds
from colonnade.data.requantise import requantise
from colonnade.linear.kernels import score
from colonnade.linear.losses import LOGISTIC
from colonnade.methods.admm.packing import pack
from colonnade.methods.admm.prox import Client, factorise
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.column_moments import shared_column, sums
from colonnade.methods.frank_wolfe.residual import SCORE_SENSITIVITY, TaskParameters, residual
from colonnade.methods.moments.rows import Projection, inner_products, project, triangle
from colonnade.privacy.accounting import units_down
from colonnade.privacy.mechanisms import DiscreteGaussian, SignedSelection
from colonnade.privacy.sampling import OsNoise
from colonnade.sketching.sparse import SparseSketch

_ROWS = 256


def warm() -> None:
    """Run each step once on a table of zeros; nothing of it is kept or sent."""
    features = np.zeros((2, _ROWS), np.int16)
    features.setflags(write=False)  # as mapped tables are: other arrays would load other code
    label = features[0]
    sketch = SparseSketch(bytes(32), _ROWS, 16, 1)
    public = TaskParameters(np.ones(2, np.int64), np.ones(16, np.int64), weight=1, clip=1)
    scores = score(features, residual(features, label, public, sketch))
    noise = OsNoise()
    SignedSelection(2 * SCORE_SENSITIVITY, SCORE_SENSITIVITY).perturb(scores, noise)
    fine = np.zeros(_ROWS, np.int32)
    fine.setflags(write=False)
    requantise(fine, declared=Bounds(0.0, 1.0), tight=Bounds(0.0, 0.5))
    sums(label)
    column = shared_column(label, 0.0, 1.0, 1.0)
    sketched = DiscreteGaussian(100, 1).perturb(sketch.apply(column.reshape(1, -1))[0], noise)
    rows = project(features, label, Projection(np.ones((2, 3), np.int64), np.zeros(2, np.int64)))
    triangle(rows)
    inner_products(rows, np.stack([sketched, sketched]), sketch)


def warm_all() -> None:
    """Do the same for the steps of clients, which few parties need: for an image's cache."""
    warm()
    spec = AdmmSpec(
        n_clients=2,
        n_features=2,
        rounds=1,
        sampled=2,
        release_units=units_down(1.0),
        gamma=1.0,
        lipschitz=1.0,
        loss=LOGISTIC,
    )
    columns = np.zeros((2, 4), np.int16)
    problems = factorise([Client(columns, columns[0])] * 2, spec)
    exact = problems.displacements(np.arange(2), np.zeros((2, 2), np.int64))
    pack(spec.code, spec.mechanism.perturb(exact[0], OsNoise()))
