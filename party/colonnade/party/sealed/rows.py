"""A party's rows as they are sealed or multiplied: in a ball, in buckets, in steps."""

from dataclasses import dataclass

from colonnade.core.arrays import IntArray
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.linear.ball import Projection
from colonnade.methods.base import Part
from colonnade.methods.sealed.kinds import SEAL, SHIELD, SealedStage
from colonnade.methods.sealed.rows import shield_from_bytes, shield_to_bytes
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.party.data.columns import Columns
from colonnade.party.engine.base import Engine
from colonnade.party.engine.local import LOCAL
from colonnade.party.methods.own_rows import OwnRows
from colonnade.privacy.ring_noise import HOSTILE


@dataclass(frozen=True, slots=True)
class SealedRows:
    """Own rows of one job, with the shield's noise if the job has one here."""

    spec: SealedSpec
    job: str
    part: Part
    columns: Columns
    engine: Engine = LOCAL

    @property
    def own(self) -> OwnRows:
        """The rows as the table has them."""
        return OwnRows(self.columns, self.part.holds_label, self.spec.presence, self.engine)

    def steps(self, base: str, projection: Projection | None, ledger: Ledger) -> IntArray:
        """Return own rows as steps, for sealing or multiplying."""
        return self.spec.rows(base, self.part).scale.scaled(self._buckets(base, projection, ledger))

    def sums(self, base: str, projection: Projection | None) -> IntArray:
        """Return own rows in buckets, exact."""
        scale, seed = self.spec.rows(base, self.part).scale, self.spec.seed(self.job)
        return self.own.buckets(projection, n_rows=scale.n_rows, n_buckets=scale.buckets, seed=seed)

    def put_shield(self, projection: Projection | None, gate: Gate) -> None:
        """Put the shield's noise on all buckets, once.

        Privacy: noisy buckets are stored and never sent. The ledger binds them to the projection,
        so that what is sealed and what is multiplied is the same; another is refused.
        """
        mechanism = self.spec.shield(self.part)
        if mechanism is None or projection is None:
            return

        def compute() -> IntArray:
            return self.sums(SEAL, projection).reshape(-1)

        request = projection.coef.tobytes() + projection.offset.tobytes()
        gate.release(self.shield_key, request, mechanism, compute, encode=shield_to_bytes)

    @property
    def shield_key(self) -> ReleaseKey:
        """The ledger's name of the shield."""
        return ReleaseKey(self.job, self.spec.round_of(SealedStage.SEAL), SHIELD, HOSTILE)

    def _buckets(self, base: str, projection: Projection | None, ledger: Ledger) -> IntArray:
        if self.spec.shield(self.part) is None:
            return self.sums(base, projection)
        # Privacy: a job with a shield has no other rows; were it not put, nothing would go on.
        if (stored := ledger.stored(self.shield_key)) is None:
            raise ValueError("rows are sealed or multiplied before their shield is put")
        return shield_from_bytes(stored.body, self.spec.n_gram(self.part))
