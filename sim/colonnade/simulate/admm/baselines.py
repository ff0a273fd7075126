"""What federated ADMM is compared with, on the same clients, grid and accounting.

All neighbours are clients. Simulation only: data is read in the open, and noise has no ledger.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.ledger.gate import int64_bytes
from colonnade.methods.admm.choices import Aggregate, ClientSampling, Variant
from colonnade.methods.admm.grid import to_grid
from colonnade.methods.admm.packing import pack
from colonnade.methods.admm.prox import ClientRows, Problems, design, factorise
from colonnade.methods.admm.recipe import Caution, gradient_step, planned_radii
from colonnade.methods.admm.releases import ClientRelease
from colonnade.methods.admm.spec import MAX_STATE, AdmmSpec
from colonnade.privacy.accounting import rho_from_units
from colonnade.privacy.distributed import GaussianShare
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.privacy.sampling import NoiseSource
from colonnade.server.methods.admm.rules import DualRule, share
from colonnade.server.methods.admm.state import SEED_BYTES
from colonnade.server.methods.admm.steps import AdmmCoordinator
from colonnade.simulate.inprocess.admm import Pool
from colonnade.wire.cohort import ClientAnswers

_MAX_STEPS = 20_000


def optimum(pool: Pool, *, tolerance: float = 1e-10) -> FloatArray:
    """Minimise without privacy: accelerated proximal gradient, restarted when it overshoots."""
    spec = pool.spec
    root = pool.rows * np.sqrt(pool.weights)[:, None]
    curvature = float(np.linalg.norm(root, 2)) ** 2 * spec.loss.curvature
    step = np.full(spec.dim, 1.0 / curvature)
    coef = ahead = np.zeros(spec.dim)
    t = 1.0
    for _ in range(_MAX_STEPS):
        new = spec.penalty.prox(ahead - step * pool.gradient(ahead), step, spec.scales)
        moved = new - coef
        if float((ahead - new) @ moved) > 0.0:
            t, ahead = 1.0, coef
            new = spec.penalty.prox(coef - step * pool.gradient(coef), step, spec.scales)
            moved = new - coef
        after = (1.0 + math.sqrt(1.0 + 4.0 * t * t)) / 2.0
        ahead, coef = new + (t - 1.0) / after * moved, new
        t = after
        if float(np.linalg.norm(moved)) <= tolerance * max(1.0, float(np.linalg.norm(coef))):
            break
    return coef


def federated(
    problems: Problems, noise: NoiseSource, *, seed: int = 0, hosts: int = 1
) -> FloatArray:
    """Run the job's own steps without ledgers, everybody answering: for long series of runs.

    ``hosts`` have equally many clients each, which matters where they release sums.
    """
    spec = problems.spec
    sizes = np.bincount(np.arange(spec.n_clients) * hosts // spec.n_clients, minlength=hosts)
    coordinator = AdmmCoordinator(spec, tuple(sizes.tolist()) if spec.maskers else ())
    state = coordinator.start(seed.to_bytes(SEED_BYTES, "little"))
    while not coordinator.finished(state):
        tasks = coordinator.tasks(state)
        release = spec.release(state.round)
        exact = problems.displacements(tasks.clients, tasks.points, round_=state.round)
        if spec.aggregate is Aggregate.NONE:
            bodies = [pack(release.code, each) for each in release.mechanism.perturb(exact, noise)]
        else:
            bodies = _sums(release, exact, tasks.clients * hosts // spec.n_clients, noise)
        said = ClientAnswers(tasks.clients, tasks.rounds, bodies, np.empty(0, np.int64))
        state = coordinator.absorb(state, said)
    return coordinator.coefficients(state)


def _sums(
    release: ClientRelease, exact: IntArray, host: IntArray, noise: NoiseSource
) -> list[bytes]:
    """Return a noisy sum for each host, with the first of its clients; nothing with the others."""
    bodies = [b""] * len(exact)
    for number in np.unique(host):
        total = exact[host == number].sum(axis=0)
        first = int(np.flatnonzero(host == number)[0])
        noisy = release.mechanism.perturb(total, noise)
        masked = isinstance(release.mechanism, GaussianShare)  # words, whose masks would cancel
        bodies[first] = int64_bytes(noisy) if masked else pack(release.code, noisy)
    return bodies


def centralised(clients: Sequence[ClientRows], spec: AdmmSpec, noise: NoiseSource) -> FloatArray:
    """Run the same job at one trusted place: every client in every round, one noise in each.

    Privacy: only the noisy sum of the displacements is public. What a client may pay for
    displacements in the federated job is divided among all rounds here; user-level, as there.
    """
    if spec.variant is Variant.PAPER:
        return _centralised_duals(factorise(clients, spec), noise)
    n = spec.n_clients
    numbers: dict[str, Any] = {
        "sampled": n,
        "minimum": 1,
        "participations": spec.steps,
        "release_units": spec.release_units * spec.max_participations // spec.steps,
        "aggregate": Aggregate.HOST,
        "maskers": 0,
        "colluding": 0,
        "sampling": ClientSampling.FIXED,
    }
    rho = rho_from_units(numbers["release_units"])
    sizes: dict[str, Any] = {"dim": spec.dim, "sampled": n, "noises": 1, "rho": rho}
    if spec.variant is Variant.PLANNED:
        sizes["rows"] = spec.client_rows
        caution = Caution.of(spec.loss, **sizes)
        numbers |= {"gamma": caution.gamma, "lipschitz": caution.radius / caution.gamma}
        first, steps = caution.radius, spec.steps
        numbers["radii"] = planned_radii(spec.loss, first=first, steps=steps, **sizes)
    else:
        numbers["gamma"], numbers["lipschitz"] = gradient_step(
            spec.loss, rounds=spec.rounds, **sizes
        )
    whole = replace(spec, **numbers)
    return federated(factorise(clients, whole), noise)


def _centralised_duals(problems: Problems, noise: NoiseSource) -> FloatArray:
    """Run ADMM with duals at one place.

    Privacy: the mean dual is public with the noisy sum. A hidden dual depends on its own client's
    data and on public vectors alone, and every displacement is clipped to ``R``, so replacing one
    client moves the sum by at most ``2 R``.
    """
    spec, n = problems.spec, problems.counts.size
    units = spec.max_units // spec.rounds
    mechanism = DiscreteGaussian.within(units, l2_sensitivity2=4 * spec.radius**2)
    everyone, step = np.arange(n), 2.0 * spec.step
    u = np.zeros((n, spec.dim))
    mean = np.zeros(spec.dim)  # public: of the duals, with the noise
    z = np.zeros(spec.dim)
    for _ in range(spec.rounds):
        exact = problems.displacements(everyone, np.rint(2.0 * z - u).astype(np.int64))
        noisy = mechanism.perturb(exact.sum(axis=0), noise)
        u += step * (z - u + exact)
        mean += step * (z - mean + noisy / n)
        z = _consensus(spec, mean)
    return z * spec.unit


def token_walk(problems: Problems, noise: NoiseSource, walk: Sequence[int]) -> FloatArray:
    """Run the decentralised variant: a token walks from client to client, each hands it on.

    The token is the model ``z`` and the sum of all duals; a client keeps its own dual and moves
    the token by its noisy displacement. On a complete graph, where the next client is drawn
    uniformly, this is the federated job with one client a round, step for step.

    Privacy: what a client hands on costs it what one participation in the federated job does. The
    papers' better figures for such walks hold against clients that see only the tokens that reach
    them. Here every connection ends at the coordinator, which sees all, so nobody could enforce
    them and none is printed. As a job it is therefore ``sampled = 1``.
    """
    spec, code = problems.spec, problems.spec.code
    duals = DualRule(spec)
    u = np.zeros((problems.counts.size, spec.dim), np.int64)  # each row is with its client
    z, total = np.zeros(spec.dim, np.int64), np.zeros(spec.dim, np.int64)
    for client in walk:
        v = z - share(spec.dual_gain, u[client] - z)
        exact = problems.displacements(np.array([client]), v[None])[0]
        moved = code.decode(pack(code, spec.mechanism.perturb(exact, noise)))
        after = u[client] + share(spec.gain, z - u[client] + moved)
        after = np.clip(after, -MAX_STATE, MAX_STATE)
        total += after - u[client]
        u[client] = after
        z = duals.consensus(total)
    return z.astype(np.float64) * spec.unit


def _consensus(spec: AdmmSpec, mean: FloatArray) -> FloatArray:
    point = spec.penalty.prox(mean * spec.unit, np.full(spec.dim, spec.gamma), spec.scales)
    return point / spec.unit


def dp_sgd(
    spec: AdmmSpec, clients: Sequence[ClientRows], noise: NoiseSource, *, rate: float, seed: int
) -> FloatArray:
    """Run federated DP-SGD: sampled clients release clipped noisy gradients of their mean loss.

    Privacy: a gradient is clipped to ``L``, that is ``R`` grid steps, so one participation costs
    what it does in ADMM, whatever the coordinator does, and clients take part as often at most.

    Parameters
    ----------
    rate
        Length of a step; it falls with the square root of the round.
    """
    draw = np.random.default_rng(seed)
    data = [design(client, spec) for client in clients]
    unit = spec.lipschitz / spec.radius
    coef = np.zeros(spec.dim)
    left = np.full(len(clients), spec.max_participations)
    for round_ in range(spec.rounds):
        pool = np.flatnonzero(left)
        if not pool.size:
            break
        picked = draw.choice(pool, min(spec.sampled, pool.size), replace=False)
        left[picked] -= 1
        exact = np.stack([_gradient(spec, data[client], coef) for client in picked.tolist()])
        noisy = spec.mechanism.perturb(exact, noise)
        step = np.full(spec.dim, rate / math.sqrt(round_ + 1.0))
        moved = coef - step * noisy.mean(axis=0) * unit
        coef = spec.penalty.prox(moved, step, spec.scales)
    return coef


def _gradient(spec: AdmmSpec, data: tuple[FloatArray, FloatArray], coef: FloatArray) -> IntArray:
    rows, y = data
    margins = rows @ coef
    slopes = margins - y
    if spec.loss.classifies:
        slopes = -y / (1.0 + np.exp(np.clip(y * margins, -500.0, 500.0)))
    values = rows.T @ slopes / len(y) * (spec.radius / spec.lipschitz)
    out = np.empty(spec.dim, np.int64)
    to_grid(values, spec.radius, out)
    return out
