"""What a job sends against what others would send: exact, from sizes alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from colonnade.methods.base import payload
from colonnade.methods.frank_wolfe.spec import SHARE, Block, FrankWolfeSpec
from colonnade.privacy.accounting import rho_of, units_down

_FLOAT32, _FLOAT64 = 4, 8

# How a budget is commonly split between a party's releases; the rest pays for selections.
_SHARE_PART, _MEAN_PART = 0.3, 0.05


@dataclass(frozen=True, slots=True)
class JobSize:
    """A job's size; privacy is joint over its parties."""

    n_rows: int
    parties: int = 4
    features: int = 60
    rounds: int = 24
    shares: int = 3  # by each party
    sketch_dim: int = 2048
    epsilon: float = 1.0
    delta: float = 1e-6

    def spec(self) -> FrankWolfeSpec:
        """Return a job of this size."""
        units = units_down(rho_of(self.epsilon, self.delta)) // self.parties
        share, mean = int(_SHARE_PART * units), int(_MEAN_PART * units)
        names = [f"x{place}" for place in range(self.features)]
        return FrankWolfeSpec(
            n_rows=self.n_rows,
            blocks=tuple(
                Block(f"p{k}", tuple(names[k :: self.parties]), 1.0, self.shares, holds_label=True)
                for k in range(self.parties)
            ),
            rounds=self.rounds,
            sketch_dim=self.sketch_dim,
            sketch_entries=1,
            select_units=(units - share - mean) // self.rounds,
            share_units=share // self.shares,
            label_units=0,
            mean_units=mean,
        )


CASES = (JobSize(n_rows=100_000), JobSize(n_rows=1_000_000))


def uplink_ratios(cases: Sequence[JobSize] = CASES) -> list[dict[str, float]]:
    """Return a row for each case: how many times less a job sends."""
    return [ratios_of(case.spec()) for case in cases]


def ratios_of(spec: FrankWolfeSpec) -> dict[str, float]:
    """Compare the most that a job can send with three ways to send more.

    ``vs_columns`` ships every column as float32; ``vs_one_shot`` sketches every feature before the
    first round, in the code that the job shares features in; ``vs_float64`` sends the sketches of
    the features that the job shares as float64, as Lou and Cheung (2018) count them.
    """
    parties = [block.party for block in spec.blocks]
    features = sum(len(block.features) for block in spec.blocks)
    ours = sum(sum(payload(spec, party).values()) for party in parties)
    shares = sum(spec.max_releases(party)[SHARE] for party in parties)
    others = {
        "vs_columns": _FLOAT32 * spec.n_rows * features,
        "vs_one_shot": features * spec.body_bytes(parties[0], SHARE) if shares else 0,
        "vs_float64": _FLOAT64 * spec.sketch_dim * shares,
    }
    facts = {"n": spec.n_rows, "parties": len(parties), "features": features}
    ratios = {name: round(size / ours, 2) for name, size in others.items()}
    return facts | {"payload_bytes": ours} | ratios
