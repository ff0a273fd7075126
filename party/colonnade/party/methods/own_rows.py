"""A party's columns as jobs over moments see them: means, and rows projected into a ball.

Privacy: what a job counts on and the table lacks is refused before anything is charged
(`OwnRows.check`). Rows of people whom the party does not have are 0 throughout.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage
from colonnade.linear.ball import Projection
from colonnade.methods.frank_wolfe.residual import TaskParameters
from colonnade.party.data.columns import Columns
from colonnade.party.engine.base import Engine
from colonnade.party.engine.kernels import sketch_plain
from colonnade.party.engine.local import LOCAL
from colonnade.sketching.sparse import Sketch


@dataclass(frozen=True, slots=True)
class OwnRows:
    """The columns of one party in one job, and where sums over their rows are computed."""

    columns: Columns
    holds_label: bool
    uses_presence: bool
    engine: Engine = LOCAL

    def check(self) -> None:
        """Refuse a job that counts on what the table does not have."""
        if self.holds_label and not self.columns.has_label:
            raise BadMessage("the job counts on this party's label but its table has none")
        if self.uses_presence and not self.columns.has_presence:
            raise BadMessage("the job asks whom this party has, but its table does not tell")

    def sums(self, *, label: bool) -> IntArray:
        """Return sums of columns, with the label last if asked and then presence, then of squares.

        Columns are in the order of the job.
        """
        flags = {"label": label and self.holds_label, "presence": self.uses_presence}
        return self._sum("means", flags)

    def gram(self, projection: Projection | None) -> IntArray:
        """Return the weighted triangle of products of the rows in the ball."""
        return self._sum("gram", self._projected(projection))

    def sketches(self, projection: Projection | None, sketch: Sketch) -> IntArray:
        """Return the sketches of the rows in the ball, flat."""
        return self._sum("sketches", self._projected(projection) | _plain(sketch))

    def inner(self, projection: Projection | None, others: IntArray, sketch: Sketch) -> IntArray:
        """Return inner products of the rows in the ball with others' sketches, flat."""
        arguments = self._projected(projection) | _plain(sketch)
        return self._sum("inner", arguments | {"others": others})

    def buckets(
        self, projection: Projection | None, *, n_rows: int, n_buckets: int, seed: bytes
    ) -> IntArray:
        """Return the sums of buckets of the rows in the ball, shape ``(columns, buckets)``."""
        arguments = self._projected(projection)
        bucketed = {"n_rows": n_rows, "n_buckets": n_buckets, "seed": seed}
        return self._sum("buckets", arguments | bucketed)

    def scores(self, public: TaskParameters, sketch: Sketch) -> IntArray:
        """Return the product of each feature with the rows' residuals."""
        arguments = {
            "coef": public.coef,
            "q": public.q,
            "weight": public.weight,
            "clip": public.clip,
            "offset": public.offset,
        }
        return self._sum("scores", arguments | self._flags() | _plain(sketch))

    def share(
        self, place: int, sketch: Sketch, *, mean: float = 0.0, deviation: float = 1.0, clip: float
    ) -> IntArray:
        """Return the sketch of one column, the label being the last; clipped unless ``clip`` is 0.

        See `methods.column_moments.shared_column`.
        """
        clipped = {"place": place, "mean": mean, "deviation": deviation, "clip": clip}
        return self._sum("share", clipped | _plain(sketch))

    def _sum(self, kernel: str, arguments: Mapping[str, Any]) -> IntArray:
        self.check()
        return self.engine.sum(kernel, self.columns, arguments)

    def _flags(self) -> dict[str, bool]:
        return {"label": self.holds_label, "presence": self.uses_presence}

    def _projected(self, projection: Projection | None) -> dict[str, Any]:
        if projection is None:
            raise BadMessage("a task has no projection")
        return {"coef": projection.coef, "offset": projection.offset, **self._flags()}


def _plain(sketch: Sketch) -> dict[str, Any]:
    return {"sketch": sketch_plain(sketch)}
