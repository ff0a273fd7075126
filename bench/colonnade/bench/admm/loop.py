"""The floor: a plain NumPy loop over clients, doing the arithmetic of a round and nothing else.

No ledger, no exact noise, no integers, no messages: cached factorisations, the proximal step, the
clip, Gaussian noise, and the updates of duals and model.
"""

import time
from collections.abc import Sequence

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.methods.admm.prox import ClientRows, design
from colonnade.methods.admm.spec import AdmmSpec


def loop_seconds(spec: AdmmSpec, clients: Sequence[ClientRows], *, rounds: int, seed: int) -> float:
    """Return the processor time that a client's part of a round takes; squared loss only."""
    draw = np.random.default_rng(seed)
    factors = [_factors(*design(client, spec)) for client in clients]
    u, mean, z = np.zeros((len(clients), spec.dim)), np.zeros(spec.dim), np.zeros(spec.dim)
    sigma = float(np.sqrt(spec.mechanism.sigma2)) * spec.unit
    radius, gamma, step = spec.gamma * spec.lipschitz, spec.gamma, 2.0 * spec.step
    began = time.process_time()
    for _ in range(rounds):
        for client, (n, basis, sizes, along) in enumerate(factors):
            v = 2.0 * z - u[client]
            q = basis @ v
            c = -gamma * sizes * (sizes * q - along) / (n + gamma * sizes * sizes)
            moved = c @ basis
            norm = float(np.sqrt(moved @ moved))
            if norm > radius:
                moved *= radius / norm
            moved += draw.normal(0.0, sigma, moved.size)
            change = step * (v + moved - z)
            u[client] += change
            mean += change / len(clients)
        z = spec.penalty.prox(mean, np.full(spec.dim, gamma), spec.scales)
    return (time.process_time() - began) / (rounds * len(clients))


def _factors(A: FloatArray, y: FloatArray) -> tuple[int, FloatArray, FloatArray, FloatArray]:  # noqa: N803
    left, sizes, basis = np.linalg.svd(A, full_matrices=False)
    return len(y), basis, sizes, left.T @ y
