"""What a party receives of the others: their shared columns, weighted by how much is signal.

All of it follows from releases. Decoded bodies are kept between rounds; a job reads each once.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.methods.column_moments import ColumnMoments, clipped_normal, moments_of
from colonnade.methods.frank_wolfe.residual import COEF_UNIT, TaskParameters
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec
from colonnade.methods.problem import Labels
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.sketching.packing import ShareCode
from colonnade.sketching.sparse import Sketch


@dataclass(frozen=True, slots=True)
class ReleasedScales:
    """Released moments by party, and the label's; zero means and unit scales without them."""

    features: Mapping[str, ColumnMoments]
    label_mean: float = 0.0
    label_deviation: float = 1.0


@dataclass(frozen=True, slots=True)
class CrossTerm:
    """Forms tasks of one job from its releases."""

    spec: FrankWolfeSpec
    sketch: Sketch
    _decoded: dict[tuple[bytes, float], FloatArray] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    _scales: dict[tuple[bytes, ...], ReleasedScales] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def publics(
        self,
        coef: Mapping[str, IntArray],
        shares: Mapping[str, Mapping[int, bytes]],
        label: bytes | None,
        means: Mapping[str, bytes],
        blocks: Iterable[Block],
    ) -> dict[str, TaskParameters]:
        """Return what each of ``blocks`` receives."""
        spec, scales = self.spec, self.scales(means)
        parts = {b.party: self._part(b, coef, shares[b.party], scales) for b in spec.blocks}
        label_part = np.zeros(self.sketch.dim)
        if spec.labels is Labels.SKETCHED and label is not None:
            made = spec.label_share(self.sketch)
            label_part -= self._trusted(label, scales.label_deviation, made)
        found = {}
        for block in blocks:
            q = np.zeros(self.sketch.dim)
            for other in spec.blocks:
                if other.party != block.party:
                    q += parts[other.party]
            if not block.holds_label:
                q += label_part
            found[block.party] = self._public(block, coef[block.party], q, scales)
        return found

    def scales(self, means: Mapping[str, bytes]) -> ReleasedScales:
        """Decode the released moments."""
        key = tuple(means.get(block.party, b"") for block in self.spec.blocks)
        if (known := self._scales.get(key)) is not None:
            return known
        features, label_mean, label_deviation = {}, 0.0, 1.0
        for block in self.spec.blocks:
            count = len(block.features)
            if (body := means.get(block.party)) is None:
                features[block.party] = ColumnMoments(np.zeros(count), np.ones(count))
                continue
            mechanism, code = self.spec.means(block)
            found = moments_of(code.decode(body), self.spec.n_rows, mechanism)
            features[block.party] = ColumnMoments(found.mean[:count], found.deviation[:count])
            if self.spec.sums_label(block):
                label_mean = float(found.mean[count])
                label_deviation = float(found.deviation[count])
        self._scales[key] = ReleasedScales(features, label_mean, label_deviation)
        return self._scales[key]

    def radius(self, block: Block, means: Mapping[str, bytes]) -> float:
        """Return the party's radius in half ranges of the label over those of its features."""
        scales = self.scales(means)
        spread = math.sqrt(float(np.mean(scales.features[block.party].deviation ** 2)))
        return self.spec.inner_radius(block) * scales.label_deviation / spread

    def intercept(self, coef: Mapping[str, IntArray], means: Mapping[str, bytes]) -> float:
        """Return the mean of the label less that of the features' part."""
        scales = self.scales(means)
        parts = (float(coef[name] @ scales.features[name].mean) for name in coef)
        return scales.label_mean - sum(parts) / COEF_UNIT

    def _part(
        self,
        block: Block,
        coef: Mapping[str, IntArray],
        shares: Mapping[int, bytes],
        scales: ReleasedScales,
    ) -> FloatArray:
        """Sum a party's shared columns, weighted; by feature, so that no history shows."""
        part = np.zeros(self.sketch.dim)
        for feature in sorted(shares):
            if shares[feature] and (amount := int(coef[block.party][feature])):
                deviation = float(scales.features[block.party].deviation[feature])
                made = self.spec.share(self.sketch)
                part += amount / COEF_UNIT * self._trusted(shares[feature], deviation, made)
        return part

    def _public(
        self, block: Block, coef: IntArray, q: FloatArray, scales: ReleasedScales
    ) -> TaskParameters:
        # A row of J' q / s has variance |q|^2 / (m s); in units of the value range.
        cross = math.sqrt(float(q @ q) / (self.sketch.dim * self.sketch.column_norm2)) / GRID
        clip = self.spec.clip * math.hypot(scales.label_deviation, cross)
        offset = -float(coef @ scales.features[block.party].mean)
        if block.holds_label:
            offset += scales.label_mean * COEF_UNIT
        return TaskParameters.saturated(coef, q, clip=clip, offset=offset)

    def _trusted(
        self, body: bytes, deviation: float, made: tuple[DiscreteGaussian, ShareCode]
    ) -> FloatArray:
        """Return a sketch in the units of its column, shrunk by how much of it is signal.

        ``k / (k + 1/m + noise / energy)`` with ``k`` the prior on squared correlation. A column
        that was clipped at ``share_clip`` deviations is taken for a normal one: that gives its
        energy and the slope of the column on its clipped self. One shared as it is has the energy
        that its sketch shows.
        """
        if (known := self._decoded.get((body, deviation))) is not None:
            return known
        mechanism, code = made
        z = code.decode(body).astype(np.float64)
        dim, prior = self.sketch.dim, self.spec.prior
        noise = mechanism.sigma2 * (1.0 + 1.0 / 192.0)
        if self.spec.mean_units:
            variance, covariance = clipped_normal(self.spec.share_clip)
            energy = self.sketch.column_norm2 * self.spec.n_rows * GRID**2 * variance
            slope = deviation * covariance / variance
        else:
            energy, slope = max(float(z @ z) - dim * noise, 0.02 * dim * noise), 1.0
        trusted: FloatArray = z * (slope * prior / (prior + 1.0 / dim + noise / energy))
        self._decoded[body, deviation] = trusted
        return trusted
