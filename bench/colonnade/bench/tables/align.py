"""How fast an alignment is, in ratio to bare X25519 multiplications on the same cores.

An id costs a party one multiplication to blind it, one for every other party's id of its rank, and
one to unblind it: ``K + 1`` in all. The floor is the time of these alone. What an alignment does
besides is hashing to the curve, signatures, digests, tags, and its dummies and canaries.
"""

import functools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from colonnade.methods.alignment import sizes
from colonnade.methods.alignment.crypto.curve import clamp, hash_to_curve, multiply
from colonnade.methods.alignment.crypto.points import Points
from colonnade.privacy.sampling import OsNoise
from colonnade.simulate.inprocess.alignment import AlignmentMember, AlignmentRun, simulated_spec

T = TypeVar("T")


@dataclass(frozen=True)
class AlignFigures:
    """One alignment, measured at its parties."""

    parties: int
    ids: int  # that each party lists
    seconds: float  # of one party, on all cores
    cpu_us_per_id: float
    up_bytes_per_id: float
    predicted_bytes_per_id: float
    ids_per_s_vs_x25519_floor: float
    cpu_vs_x25519_floor: float  # the same in processor time, which a busy machine hardly changes
    restarts: int = 0  # of parties and coordinator, while it ran


@dataclass
class Stopwatch:
    """Adds up wall and processor time."""

    wall: float = 0.0
    cpu: float = 0.0

    def time(self, work: Callable[[], T]) -> T:
        """Do some work and add its time."""
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu
        return result


class CurveFloor:
    """Bare multiplications, sampled all through a run so that a busy machine slows both alike.

    They are libsodium's, in all threads and without the interpreter lock. Where `cryptography`,
    which holds the lock, takes less processor time for one, the floor is lower by that ratio.
    """

    def __init__(self, points: Points) -> None:
        self._scalar, self._points = clamp(os.urandom(32)), points
        self._key = X25519PrivateKey.from_private_bytes(self._scalar)
        self._rows = [row.tobytes() for row in points]
        self._bare, self._peer, self._samples = Stopwatch(), Stopwatch(), 0
        multiply(self._scalar, points)  # compiles

    def sample(self) -> None:
        """Multiply all points once with each library."""
        self._bare.time(lambda: multiply(self._scalar, self._points))
        self._peer.time(self._exchange)
        self._samples += len(self._rows)

    def _exchange(self) -> None:
        for row in self._rows:
            self._key.exchange(X25519PublicKey.from_public_bytes(row))

    @property
    def seconds(self) -> float:
        """Wall time of one multiplication with all cores busy."""
        return self._bare.wall * min(1.0, self._peer.cpu / self._bare.cpu) / self._samples

    @property
    def cpu_seconds(self) -> float:
        """Processor time of one multiplication."""
        return min(self._bare.cpu, self._peer.cpu) / self._samples


def _members(n_parties: int, n_ids: int) -> dict[str, AlignmentMember]:
    """Make parties that share half of their people, as a union of 2 n would have it."""
    generator = np.random.default_rng(0)
    return {
        f"party-{k}": AlignmentMember(
            Ed25519PrivateKey.generate(),
            [b"%010d" % each for each in generator.choice(2 * n_ids, n_ids, replace=False)],
        )
        for k in range(n_parties)
    }


def measure_alignment(
    n_parties: int = 3, n_ids: int = 20_000, *, restarts: int = 0
) -> AlignFigures:
    """Run an alignment in one process and time what its parties do.

    Parameters
    ----------
    restarts
        How often somebody, the coordinator or a party in turn, is started again from what it kept.
    """
    floor = CurveFloor(hash_to_curve(b"bench", [b"%d" % each for each in range(2048)]))
    members = _members(n_parties, n_ids)
    run = AlignmentRun(simulated_spec(members, salt=os.urandom(32)), members, OsNoise(), os.urandom)
    watch, restarted = Stopwatch(), 0
    while not run.steps.finished(run.state):
        answers = {}
        for name, task in run.steps.tasks(run.state).items():
            answers[name] = watch.time(functools.partial(run.ask, name, task))
            for kind, body in answers[name].items():
                run.uplink[name][kind] = run.uplink[name].get(kind, 0) + len(body)
            floor.sample()
        run.state = run.steps.absorb(run.state, answers)
        if restarted < restarts:
            _restart(run, restarted)
            restarted += 1
    _check(run, members)
    up = sum(sum(kinds.values()) for kinds in run.uplink.values())
    predicted = sum(
        sum(sizes.payload(run.spec, k, run.state.lengths).values()) for k in range(n_parties)
    )
    total = n_parties * n_ids
    return AlignFigures(
        parties=n_parties,
        ids=n_ids,
        seconds=watch.wall / n_parties,
        cpu_us_per_id=1e6 * watch.cpu / total,
        up_bytes_per_id=up / total,
        predicted_bytes_per_id=predicted / total,
        ids_per_s_vs_x25519_floor=floor.seconds * (n_parties + 1) * total / watch.wall,
        cpu_vs_x25519_floor=floor.cpu_seconds * (n_parties + 1) * total / watch.cpu,
        restarts=restarted,
    )


def _restart(run: AlignmentRun, turn: int) -> None:
    names = list(run.uplink)
    if turn % (len(names) + 1) == 0:
        run.restart_coordinator()
    else:
        run.restart_party(names[turn % (len(names) + 1) - 1])


def _check(run: AlignmentRun, members: dict[str, AlignmentMember]) -> None:
    """Refuse figures of a run that put one person in two rows, or two in one."""
    found: dict[bytes, int] = {}
    for name in members:
        for person, row in run.rows(name).items():
            if found.setdefault(person, row) != row:
                raise RuntimeError("the alignment is wrong: a person has two rows")
    if len({*found.values()}) != len(found):
        raise RuntimeError("the alignment is wrong: two people have one row")


def ids_per_s_vs_x25519_floor(n_parties: int = 3, n_ids: int = 20_000) -> float:
    """Return ids a second in ratio to bare X25519 multiplications on the same cores; aim 0.6."""
    return measure_alignment(n_parties, n_ids).ids_per_s_vs_x25519_floor
