"""A party's side of private block-coordinate Frank-Wolfe: open, then choose, and share at need.

Privacy: four kinds of release, all through the gate. A selection is the exponential mechanism over
exact integer scores whose sensitivity is `SCORE_SENSITIVITY` for any task a coordinator can send
(see `methods.frank_wolfe.residual`). A share is the sketch of a whole column with discrete Gaussian
noise for ``2 GRID`` times the column norm of ``J``; the label's sketch is the same. Means are the
sums of all columns of the job and of their squares (see `linear.sums`). Which features
were shared before, and how a column is clipped before it is shared, follows from stored releases
only, so it depends on released bytes alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger, Released
from colonnade.methods.column_moments import moments_of
from colonnade.methods.frank_wolfe.codec import task_from_bytes
from colonnade.methods.frank_wolfe.residual import TaskParameters
from colonnade.methods.frank_wolfe.spec import (
    LABEL,
    MEANS,
    SELECT,
    SHARE,
    Block,
    FrankWolfeSpec,
    decode_choice,
    encode_choice,
)
from colonnade.party.data.columns import Columns
from colonnade.party.engine.base import Engine
from colonnade.party.engine.local import LOCAL
from colonnade.party.methods.base import JobContext
from colonnade.party.methods.own_rows import OwnRows
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.sketching.packing import ShareCode
from colonnade.sketching.sparse import Sketch
from colonnade.wire.codec import Releases


@dataclass(frozen=True, slots=True)
class FrankWolfeParty:
    """Answers the tasks of one job."""

    spec: FrankWolfeSpec
    job: str
    block: Block
    sketch: Sketch
    columns: Columns
    gate: Gate
    ledger: Ledger
    engine: Engine = LOCAL
    # Rounds whose stored share was looked up already, and its feature.
    _shared: dict[int, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def open(self, request: bytes) -> list[Released]:
        """Release what the job opens with: means for the intercept, the label's sketch."""
        kinds = self.spec.opening(self.block)
        if not kinds:
            raise BadMessage("this job asks nothing of this party before its first round")
        self._rows.check()
        released = []
        if MEANS in kinds:
            made = self.spec.means(self.block)
            released.append(self._release(0, MEANS, request, made, self._sums))
        if LABEL in kinds and self.block.holds_label:
            made = self.spec.label_share(self.sketch)
            place = len(self.block.features)
            released.append(self._release(0, LABEL, request, made, lambda: self._sketch(place)))
        return released

    def choose(
        self, round_: int, public: TaskParameters, candidates: tuple[int, ...], request: bytes
    ) -> list[Released]:
        """Release a choice for the round and, if its feature is new, the feature's sketch."""
        self._check_task(round_, public, candidates)
        shared = self.shared(before=round_)
        allowed = self._allowed(shared, candidates)
        self._rows.check()

        def scores() -> IntArray:
            return self._rows.scores(public, self.sketch)[allowed]

        def encode(choice: IntArray) -> bytes:
            return encode_choice(int(allowed[choice[0]]), int(choice[1]))

        key = ReleaseKey(self.job, round_, SELECT)
        picked = self.gate.release(key, request, self.spec.selection(round_), scores, encode=encode)
        feature, _ = decode_choice(picked.body, len(self.block.features))
        full = len(shared) >= self.block.shares or self.spec.is_local(round_)
        if feature in shared or full:
            return [picked]
        made = self.spec.share(self.sketch)
        share = self._release(round_, SHARE, request, made, lambda: self._sketch(feature))
        return [picked, share]

    def shared(self, *, before: int) -> frozenset[int]:
        """Return the features shared in earlier rounds, from stored releases."""
        if not self.block.shares:
            return frozenset()
        stored = self.ledger.state.stored
        for round_ in range(1, min(before, self.spec.rounds + 1)):
            if round_ in self._shared or ReleaseKey(self.job, round_, SHARE) not in stored:
                continue
            chosen = self.ledger.stored(ReleaseKey(self.job, round_, SELECT))
            if chosen is not None:
                feature, _ = decode_choice(chosen.body, len(self.block.features))
                self._shared[round_] = feature
        return frozenset(feature for round_, feature in self._shared.items() if round_ < before)

    @property
    def _rows(self) -> OwnRows:
        return OwnRows(self.columns, self.block.holds_label, False, self.engine)

    def _release(
        self,
        round_: int,
        kind: str,
        request: bytes,
        made: tuple[DiscreteGaussian, ShareCode],
        compute: Callable[[], IntArray],
    ) -> Released:
        mechanism, code = made
        key = ReleaseKey(self.job, round_, kind)
        return self.gate.release(key, request, mechanism, compute, encode=code.encode)

    def _sums(self) -> IntArray:
        """Return the sums of the columns in the order of the job, label last, then of squares."""
        return self._rows.sums(label=self.spec.sums_label(self.block))

    def _sketch(self, place: int) -> IntArray:
        """Return the exact sketch of a column, number ``place`` among the moments."""
        if not self.spec.mean_units:
            return self._rows.share(place, self.sketch, clip=0.0)
        body = self.ledger.stored(ReleaseKey(self.job, 0, MEANS))
        if body is None:
            raise BadMessage("the job's opening was not answered; nothing can be shared before")
        mechanism, code = self.spec.means(self.block)
        known = moments_of(code.decode(body.body), self.spec.n_rows, mechanism)
        mean, deviation = float(known.mean[place]), float(known.deviation[place])
        clip = self.spec.share_clip
        return self._rows.share(place, self.sketch, mean=mean, deviation=deviation, clip=clip)

    def _check_task(self, round_: int, public: TaskParameters, candidates: tuple[int, ...]) -> None:
        """Refuse a task that does not fit the job, before anything is charged."""
        n_features = len(self.block.features)
        if not 1 <= round_ <= self.spec.rounds:
            raise BadMessage(f"a task is for round {round_} of a job of {self.spec.rounds} rounds")
        if public.coef.shape != (n_features,) or public.q.shape != (self.sketch.dim,):
            raise BadMessage("a task has other sizes than the job")
        if any(not 0 <= feature < n_features for feature in candidates):
            raise BadMessage("a task names a feature that the party does not have in this job")
        if self.spec.mean_units and ReleaseKey(self.job, 0, MEANS) not in self.ledger.state.stored:
            raise BadMessage("the job's opening was not answered; nothing can be chosen before")

    def _allowed(self, shared: frozenset[int], candidates: tuple[int, ...]) -> IntArray:
        """Return the features that may be chosen: what is asked for, within what can be shared."""
        allowed = set(candidates) or set(range(len(self.block.features)))
        if self.block.shares and len(shared) >= self.block.shares:
            allowed &= shared
        if not allowed:
            raise BadMessage("a task leaves nothing to choose from")
        return np.array(sorted(allowed), np.int64)


@dataclass(frozen=True, slots=True)
class FrankWolfeAnswers:
    """Frank-Wolfe's side."""

    party: FrankWolfeParty
    context: JobContext

    @classmethod
    def of(cls, spec: FrankWolfeSpec, context: JobContext) -> "FrankWolfeAnswers":
        """Build from context."""
        block, sketch = spec.block(context.party), spec.sketch(context.job_id)
        party = FrankWolfeParty(
            spec,
            context.job_id,
            block,
            sketch,
            context.columns,
            context.gate,
            context.ledger,
            context.engine,
        )
        return cls(party, context)

    def answer(self, round_: int, body: bytes) -> Releases:
        """Release what a task asks for."""
        spec, block = self.party.spec, self.party.block
        task = task_from_bytes(body, n_features=len(block.features), sketch_dim=spec.sketch_dim)
        request = self.context.request(body)
        if task.public is None:
            if round_ != 0:
                raise BadMessage("only round 0 is an opening")
            return Releases(self.party.open(request))
        if not 1 <= round_ <= spec.rounds:
            raise BadMessage(f"the job has rounds 1 to {spec.rounds}")
        keys = [ReleaseKey(self.party.job, 0, kind) for kind in spec.opening(block)]
        if any(key not in self.party.ledger.state.stored for key in keys):
            raise BadMessage("the job's opening comes first")  # before anything is charged
        return Releases(self.party.choose(round_, task.public, task.candidates, request))
