"""What a party is asked in a round of a moments job: bounded integers, all public."""

from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.linear.ball import Projection, check_outputs, exceeds
from colonnade.methods.frank_wolfe.residual import TaskParameters
from colonnade.methods.moments.rows import MAX_SKETCH


@dataclass(frozen=True, slots=True)
class Task:
    """One round's question to one party; which parts it has follows from the round's stage.

    Means carry nothing. A label's sketch, a Gram matrix and directions carry a projection; inner
    products carry a projection and sketches; screening carries what Frank-Wolfe's choice does.
    """

    round: int
    projection: Projection | None = None
    sketches: IntArray | None = None  # shape (n_sketches, sketch_dim), in UNIT of a ball's step
    public: TaskParameters | None = None
    candidates: tuple[int, ...] = ()  # empty for all features

    def __post_init__(self) -> None:
        if self.sketches is None:
            return
        if self.sketches.ndim != 2 or self.sketches.dtype != np.int64:
            raise ValueError("sketches are a matrix of 64-bit integers")
        check_outputs(len(self.sketches))
        if exceeds(self.sketches, MAX_SKETCH):
            raise ValueError("a sketch entry is too large")
