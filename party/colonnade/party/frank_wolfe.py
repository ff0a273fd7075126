"""A party's side of private block-coordinate Frank-Wolfe: choose, and share at need.

Privacy: two kinds of release, both through the gate. A selection is the exponential mechanism over
exact integer scores whose sensitivity is `SCORE_SENSITIVITY` for any task a coordinator can send
(see `optim.vertical.residual`). A share is the sketch of a whole column with discrete Gaussian
noise for ``2 GRID`` times the column norm of ``J``. Which features were shared before is read
from stored releases only, so whether a share is sent depends on released bytes alone.
"""

from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import Int16Array, IntArray
from colonnade.core.errors import BadInput
from colonnade.optim.kernels import score
from colonnade.optim.sketch import Sketch
from colonnade.optim.vertical.residual import Public, residual
from colonnade.optim.vertical.spec import (
    Block,
    FrankWolfeSpec,
    Labels,
    decode_choice,
    encode_choice,
)
from colonnade.privacy.entries import ReleaseKey
from colonnade.privacy.gate import Gate
from colonnade.privacy.ledger import Ledger, Released


@dataclass(frozen=True, slots=True)
class Columns:
    """A party's features in the order of the job, and the label if it holds it."""

    features: Int16Array
    label: Int16Array | None


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

    def choose(
        self, round_: int, public: Public, candidates: tuple[int, ...], request: bytes
    ) -> list[Released]:
        """Release a choice for the round and, if its feature is new, the feature's sketch."""
        key = ReleaseKey(self.job, round_, "select")
        allowed = self._allowed(round_, candidates)
        label = self.columns.label if self.block.holds_label else None

        def scores() -> IntArray:
            rows = residual(self.columns.features, label, public, self.sketch)
            return score(self.columns.features, rows)[allowed]

        def encode(choice: IntArray) -> bytes:
            return encode_choice(int(allowed[choice[0]]), int(choice[1]))

        picked = self.gate.release(key, request, self.spec.selection(), scores, encode=encode)
        feature, _ = decode_choice(picked.body, len(self.block.features))
        shared = self.shared(before=round_)
        if feature in shared or len(shared) >= self.block.shares:
            return [picked]
        mechanism, code = self.spec.share(self.sketch)
        share = self.gate.release(
            ReleaseKey(self.job, round_, "share"),
            request,
            mechanism,
            lambda: self.sketch.apply(self.columns.features[feature : feature + 1])[0],
            encode=code.encode,
        )
        return [picked, share]

    def share_label(self, request: bytes) -> Released:
        """Release the label's sketch."""
        label = self.columns.label
        if label is None or self.spec.labels is not Labels.SKETCHED:
            raise BadInput("this job asks no label of this party")
        mechanism, code = self.spec.label_share(self.sketch)
        return self.gate.release(
            ReleaseKey(self.job, 0, "label"),
            request,
            mechanism,
            lambda: self.sketch.apply(label.reshape(1, -1))[0],
            encode=code.encode,
        )

    def shared(self, *, before: int) -> frozenset[int]:
        """Return the features shared in earlier rounds, from stored releases."""
        found = set()
        for key in self.ledger.state.stored:
            if key.job == self.job and key.kind == "share" and key.round < before:
                chosen = self.ledger.stored(ReleaseKey(self.job, key.round, "select"))
                if chosen is not None:
                    found.add(decode_choice(chosen.body, len(self.block.features))[0])
        return frozenset(found)

    def _allowed(self, round_: int, candidates: tuple[int, ...]) -> IntArray:
        """Return the features that may be chosen: what is asked for, within what can be shared."""
        n_features = len(self.block.features)
        if any(not 0 <= feature < n_features for feature in candidates):
            raise BadInput("a task names a feature that the party does not have in this job")
        allowed = set(candidates) or set(range(n_features))
        shared = self.shared(before=round_)
        if self.block.shares and len(shared) >= self.block.shares:
            allowed &= shared
        if not allowed:
            raise BadInput("a task leaves nothing to choose from")
        return np.array(sorted(allowed), np.int64)
