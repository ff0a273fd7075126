"""The core benchmark: every figure a ratio against a peer or a floor measured in the same run.

Each pair is measured in turns, several times, and the best times are compared: what a noisy
neighbour adds is in no measurement of the code. Disks have no best time; there it is the median.
"""

import functools
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colonnade.bench.scratch import say
from colonnade.core.arrays import IntArray
from colonnade.core.jit import njit
from colonnade.core.threads import cpu_count, over_ranges
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.linear.kernels import score
from colonnade.privacy.accounting import units_down
from colonnade.privacy.mechanisms import DiscreteGaussian, SignedSelection
from colonnade.privacy.sampling import OsNoise
from colonnade.sketching.sparse import SparseSketch


@dataclass(frozen=True, slots=True)
class CoreSizes:
    """How much to measure."""

    repeats: int
    samples: int
    peer_samples: int
    rows: int
    columns: int
    releases: int


QUICK = CoreSizes(
    repeats=9, samples=200_000, peer_samples=4_000, rows=10**6, columns=100, releases=90
)
FULL = CoreSizes(
    repeats=11, samples=10**6, peer_samples=20_000, rows=10**6, columns=100, releases=200
)
SIGMAS = (10, 2**12, 2**24)


def run_core(sizes: CoreSizes, folder: Path) -> dict[str, object]:
    """Measure everything and return the figures by name."""
    figures: dict[str, object] = {"threads": cpu_count()}
    parts: dict[str, Callable[[], dict[str, object]]] = {
        "exact Gaussian noise": lambda: gaussian(sizes),
        "score pass": lambda: score_pass(sizes),
        "sketch": lambda: sketch(sizes),
        "selection": lambda: selection(sizes),
        "durable releases": lambda: durable(sizes, folder),
    }
    for name, measure in parts.items():
        say(name)
        figures |= measure()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return figures | {"peak_rss_mb": round(peak / 1024, 1)}


def in_turns(
    repeats: int,
    *works: Callable[[], object],
    pick: Callable[[list[float]], float] = min,
) -> list[float]:
    """Return the best seconds of each work, all run in turns; the first turn does not count."""
    times: list[list[float]] = [[] for _ in works]
    for turn in range(repeats + 1):
        for work, spent in zip(works, times, strict=True):
            begin = time.perf_counter()
            work()
            if turn:
                spent.append(time.perf_counter() - begin)
    return [pick(spent) for spent in times]


def gaussian(sizes: CoreSizes) -> dict[str, object]:
    """Compare the exact sampler with OpenDP's exact one and with numpy's floating-point one."""
    noise, generator = OsNoise(), np.random.default_rng(0)
    rows, slowest, least = [], 0.0, float("inf")
    for sigma in SIGMAS:
        peer = _opendp(sigma, sizes.peer_samples)
        works: list[Callable[[], object]] = [
            functools.partial(noise.discrete_gaussian, sigma**2, sizes.samples),
            functools.partial(generator.normal, 0.0, sigma, sizes.samples),
        ]
        ours, floats, *theirs = in_turns(sizes.repeats, *works, *([peer] if peer else []))
        row: dict[str, object] = {
            "sigma": sigma,
            "ns": round(ours / sizes.samples * 1e9, 1),
            "vs_numpy": round(floats / ours, 4),
        }
        slowest = max(slowest, ours / sizes.samples * 1e9)
        if theirs:
            speedup = theirs[0] / sizes.peer_samples / (ours / sizes.samples)
            row["speedup_vs_opendp"] = round(speedup, 1)
            least = min(least, speedup)
        rows.append(row)
    return {
        "gaussian_speedup_vs_opendp": round(least, 1) if np.isfinite(least) else None,
        "gaussian_ns": round(slowest, 1),
        "gaussian": rows,
    }


def _opendp(sigma: int, size: int) -> Callable[[], object] | None:
    """Return a draw of OpenDP's integer Gaussian mechanism, or None if it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    mechanism = space >> dp.m.then_gaussian(scale=float(sigma))
    zeros = [0] * size
    return lambda: mechanism(zeros)


@njit
def _read(words: IntArray, first: int, last: int) -> int:
    total = np.int64(0)
    for i in range(first, last):
        total += words[i]
    return int(total)


def score_pass(sizes: CoreSizes) -> dict[str, object]:
    """Compare the score pass with just reading the same bytes, on the same threads."""
    generator = np.random.default_rng(0)
    shape = (sizes.columns, sizes.rows)
    columns = generator.integers(-(2**14), 2**14 + 1, shape, dtype=np.int16)
    residual = generator.integers(-(2**14), 2**14 + 1, sizes.rows, dtype=np.int16)
    words = columns.reshape(-1).view(np.int64)
    ours, reading = in_turns(
        sizes.repeats,
        lambda: score(columns, residual),
        lambda: over_ranges(lambda first, last: _read(words, first, last), words.size),
    )
    return {
        "score_bandwidth_fraction": round(reading / ours, 3),
        "score_gb_per_s": round(columns.nbytes / ours / 1e9, 2),
        "read_gb_per_s": round(columns.nbytes / reading / 1e9, 2),
    }


def sketch(sizes: CoreSizes, *, dim: int = 2048) -> dict[str, object]:
    """Compare the sketch of one column, hash included, with numpy.bincount on ready buckets."""
    generator = np.random.default_rng(0)
    column = generator.integers(-(2**14), 2**14 + 1, (1, sizes.rows), dtype=np.int16)
    buckets = generator.integers(0, dim, sizes.rows)
    signs = generator.choice([-1.0, 1.0], sizes.rows)
    ours, peer = in_turns(
        4 * sizes.repeats,
        lambda: SparseSketch(b"bench", sizes.rows, dim).apply(column),
        lambda: np.bincount(buckets, weights=signs * column[0], minlength=dim),
    )
    return {
        "sketch_speedup_vs_bincount": round(peer / ours, 2),
        "sketch_ns_per_row": round(ours / sizes.rows * 1e9, 3),
    }


def selection(sizes: CoreSizes) -> dict[str, object]:
    """Time a private choice among a million signed candidates."""
    scores = np.random.default_rng(0).integers(-(10**12), 10**12, 500_000)
    mechanism, noise = SignedSelection(scale=10**11, sensitivity=10**10), OsNoise()
    (ours,) = in_turns(sizes.repeats, lambda: mechanism.perturb(scores, noise))
    return {"select_1e6_ms": round(ours * 1e3, 2)}


def durable(sizes: CoreSizes, folder: Path) -> dict[str, object]:
    """Compare releases through the gate with bare syncs, three for each release."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        files = LedgerFiles(Path(scratch) / "ledger")
        create_ledger(files, LedgerConfig("bench", {"": units_down(1000.0)}))
        ledger = open_ledger(files)
        gate = Gate(ledger, OsNoise())
        mechanism = DiscreteGaussian(sigma2=2**40, l2_sensitivity2=2**30)
        value: IntArray = np.zeros(32, np.int64)  # short: the ledger is measured, not the noise
        rounds = iter(range(10**9))

        def releases() -> None:
            for _ in range(sizes.releases):
                key = ReleaseKey("bench", next(rounds), "share")
                gate.release(key, b"request", mechanism, lambda: value)

        with (Path(scratch) / "raw").open("w+b") as raw:
            raw.write(bytes(4096 * 64))
            raw.flush()
            os.fsync(raw.fileno())
            ours, floor = in_turns(
                sizes.repeats,
                releases,
                lambda: _bare_syncs(raw.fileno(), 3 * sizes.releases),
                pick=statistics.median,
            )
        ledger.close()
    return {
        "durable_release_fraction": round(floor / ours, 3),
        "releases_per_s": round(sizes.releases / ours, 1),
        "sync_ms": round(floor / (3 * sizes.releases) * 1e3, 3),
    }


def _bare_syncs(file: int, count: int) -> None:
    block = bytes(4096)
    for number in range(count):
        os.pwrite(file, block, 4096 * (number % 64))
        os.fdatasync(file)


_AIMS = {
    "gaussian_speedup_vs_opendp": ("exact Gaussian against OpenDP, times as fast", "10"),
    "gaussian_ns": ("exact Gaussian, ns a sample", ""),
    "score_bandwidth_fraction": ("score pass, part of read bandwidth", "0.6"),
    "sketch_speedup_vs_bincount": ("sketch against bincount, times as fast", "3"),
    "durable_release_fraction": ("durable releases, part of bare syncs", "0.5"),
    "select_1e6_ms": ("choice among 1e6 candidates, ms", "about 50"),
    "peak_rss_mb": ("peak memory, MB", ""),
}


def table(figures: dict[str, object]) -> list[dict[str, object]]:
    """Return rows of name, figure and aim for people."""
    return [
        {"figure": title, "measured": figures.get(name), "aim": aim}
        for name, (title, aim) in _AIMS.items()
    ]
