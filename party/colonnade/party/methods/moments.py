"""A party's side of a moments job: one answer a round, each through the gate.

Privacy: seven kinds of release. Means are sums of columns and squares (`linear.sums`);
a choice in screening is Frank-Wolfe's (`methods.frank_wolfe.residual`); all others begin with a
projection of each row into a ball, chosen by the coordinator and bounded here
(`linear.ball`). Mechanisms and prices follow from the specification alone, and a
task is refused, before anything is charged, for what it says and never for what the data is.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger, Released
from colonnade.methods.base import Part
from colonnade.methods.frank_wolfe.spec import encode_choice
from colonnade.methods.moments.codec import task_from_bytes
from colonnade.methods.moments.spec import CROSS, GRAM, MARGINALS, MEANS, SCREEN, MomentsSpec, Stage
from colonnade.methods.moments.tasks import Task
from colonnade.party.data.columns import Columns
from colonnade.party.engine.base import Engine
from colonnade.party.engine.local import LOCAL
from colonnade.party.methods.base import JobContext
from colonnade.party.methods.own_rows import OwnRows
from colonnade.sketching.sparse import Sketch
from colonnade.wire.codec import Releases


@dataclass(frozen=True, slots=True)
class MomentsParty:
    """Answers the tasks of one job."""

    spec: MomentsSpec
    job: str
    part: Part
    sketch: Sketch
    columns: Columns
    gate: Gate
    ledger: Ledger
    engine: Engine = LOCAL

    def answer(self, task: Task, request: bytes) -> list[Released]:
        """Release what a task asks for; ``request`` binds the ledger to what was received."""
        stages = self.spec.stages()
        if not 0 <= task.round < len(stages):
            raise BadMessage(f"a task is for round {task.round} of a job of {len(stages)} rounds")
        if not self.spec.round_kinds(task.round, self.part):
            raise BadMessage(f"round {task.round} of this job asks nothing of this party")
        self._check_shapes(task, stages[task.round])
        self._rows.check()  # a table without what is asked is refused before anything is charged
        answers: dict[Stage, Callable[[Task, bytes], list[Released]]] = {
            Stage.MEANS: self._means,
            Stage.LABEL: self._sketches,
            Stage.SCREEN: self._screen,
            Stage.GRAM: self._gram,
            Stage.SHARE: self._sketches,
            Stage.CROSS: self._cross,
        }
        return answers[stages[task.round]](task, request)

    def _means(self, task: Task, request: bytes) -> list[Released]:
        """Release sums of the columns in the order of the job, label last, then of squares."""

        def compute() -> IntArray:
            return self._rows.sums(label=self.spec.sums_label(self.part))

        return [self._release(task.round, MEANS, request, compute)]

    def _sketches(self, task: Task, request: bytes) -> list[Released]:
        """Release the sketches of a projection: the label's, or the directions'."""
        (kind,) = self.spec.round_kinds(task.round, self.part)

        def compute() -> IntArray:
            return self._rows.sketches(task.projection, self.sketch)

        return [self._release(task.round, kind, request, compute)]

    def _screen(self, task: Task, request: bytes) -> list[Released]:
        """Release a choice among the candidates."""
        public, allowed = task.public, self._allowed(task.candidates)
        if public is None:
            raise BadMessage("a task of screening has no coefficients")

        def compute() -> IntArray:
            return self._rows.scores(public, self.sketch)[allowed]

        def encode(choice: IntArray) -> bytes:
            return encode_choice(int(allowed[choice[0]]), int(choice[1]))

        key = ReleaseKey(self.job, task.round, SCREEN)
        mechanism = self.spec.selection()
        return [self.gate.release(key, request, mechanism, compute, encode=encode)]

    def _gram(self, task: Task, request: bytes) -> list[Released]:
        """Release the Gram matrix and, without the label, the features' products with it."""

        def compute() -> IntArray:
            return self._rows.gram(task.projection)

        released = [self._release(task.round, GRAM, request, compute)]
        if not self.part.holds_label:
            released.append(self._inner(task, MARGINALS, request))
        return released

    def _cross(self, task: Task, request: bytes) -> list[Released]:
        """Release the inner products of own directions with those of all other parties."""
        return [self._inner(task, CROSS, request)]

    def _inner(self, task: Task, kind: str, request: bytes) -> Released:
        sketches = task.sketches
        if sketches is None:
            raise BadMessage("a task of inner products has no sketches")

        def compute() -> IntArray:
            return self._rows.inner(task.projection, sketches, self.sketch)

        return self._release(task.round, kind, request, compute)

    def _release(
        self, round_: int, kind: str, request: bytes, compute: Callable[[], IntArray]
    ) -> Released:
        mechanism, code = self.spec.made(self.part, kind)
        key = ReleaseKey(self.job, round_, kind)
        return self.gate.release(key, request, mechanism, compute, encode=code.encode)

    @property
    def _rows(self) -> OwnRows:
        return OwnRows(self.columns, self.part.holds_label, self.spec.presence, self.engine)

    def _allowed(self, candidates: tuple[int, ...]) -> IntArray:
        n_features = len(self.part.features)
        if any(not 0 <= feature < n_features for feature in candidates):
            raise BadMessage("a task names a feature that the party does not have in this job")
        return np.array(sorted(set(candidates) or range(n_features)), np.int64)

    def _check_shapes(self, task: Task, stage: Stage) -> None:
        """Refuse a task that does not fit the job, before anything is charged."""
        spec, part, dim = self.spec, self.part, self.sketch.dim
        outputs = {
            Stage.LABEL: 1,
            Stage.GRAM: spec.n_gram(part),
            Stage.SHARE: spec.n_directions(part),
            Stage.CROSS: spec.n_probes(part),
        }.get(stage)
        n_sketches = spec.n_others(part) if stage is Stage.CROSS else None
        if stage is Stage.GRAM and MARGINALS in spec.round_kinds(task.round, part):
            n_sketches = 1
        shape = None if task.projection is None else task.projection.coef.shape
        if shape != (None if outputs is None else (outputs, spec.n_columns(part))):
            raise BadMessage("a task's projection has another size than the job's")
        held = None if task.sketches is None else task.sketches.shape
        if held != (None if n_sketches is None else (n_sketches, dim)):
            raise BadMessage("a task's sketches have another size than the job's")
        public = task.public
        if (public is not None) != (stage is Stage.SCREEN):
            raise BadMessage("a task carries coefficients if and only if it is one of screening")
        if public is not None and (public.coef.shape, public.q.shape) != (
            (len(part.features),),
            (dim,),
        ):
            raise BadMessage("a task has other sizes than the job")


@dataclass(frozen=True, slots=True)
class MomentsAnswers:
    """Moments' side."""

    party: MomentsParty
    context: JobContext

    @classmethod
    def of(cls, spec: MomentsSpec, context: JobContext) -> "MomentsAnswers":
        """Build from context."""
        part, sketch = spec.part(context.party), spec.sketch(context.job_id)
        party = MomentsParty(
            spec,
            context.job_id,
            part,
            sketch,
            context.columns,
            context.gate,
            context.ledger,
            context.engine,
        )
        return cls(party, context)

    def answer(self, round_: int, body: bytes) -> Releases:
        """Release what a task asks for."""
        spec, part = self.party.spec, self.party.part
        task = task_from_bytes(
            body,
            round_=round_,
            n_columns=spec.n_columns(part),
            n_features=len(part.features),
            sketch_dim=spec.sketch_dim,
        )
        return Releases(self.party.answer(task, self.context.request(body)))
