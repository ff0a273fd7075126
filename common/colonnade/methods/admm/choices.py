"""What a job over clients can choose, and which numbers belong together."""

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from colonnade.methods.admm.releases import WHOLE
from colonnade.methods.base import MAX_CLIENTS

if TYPE_CHECKING:
    from colonnade.methods.admm.spec import AdmmSpec


class ClientSampling(enum.Enum):
    """How the clients of a round are drawn: so many without replacement, or a coin for each."""

    FIXED = "fixed"
    POISSON = "poisson"


class Variant(enum.Enum):
    """What a client computes, and what the coordinator makes of it."""

    PLANNED = "planned"  # proximal steps from one point, averaged with planned gain and radius
    PAPER = "paper"  # consensus ADMM with a dual for each client
    GRADIENT = "gradient"  # gradient steps (federated DP-SGD), for clients with different rows


class Aggregate(enum.Enum):
    """What leaves a host: its clients' answers, or their sum."""

    NONE = "none"  # every client's answer with its own noise
    HOST = "host"  # the sum over the clients of one host, with one noise
    COHORT = "cohort"  # that sum with a part of the noise, under masks that cancel over all hosts


@dataclass(frozen=True, slots=True)
class CohortSize:
    """How many clients a round draws, needs, and how often it may ask one."""

    sampled: int
    minimum: int
    limit: int


def check_plan(spec: "AdmmSpec") -> None:
    """Refuse numbers of the planned variant that do not belong together."""
    if spec.aggregate is not Aggregate.NONE and spec.variant is Variant.PAPER:
        raise ValueError("duals need the answers of every client: the paper has no sums")
    if (spec.aggregate is Aggregate.COHORT) != bool(spec.maskers):
        raise ValueError("maskers belong to sums over a cohort, which need them")
    if spec.maskers > spec.sampled:
        raise ValueError("a round of a secure sum draws a client of every masker")
    if spec.cohort_rules is None and spec.colluding:
        raise ValueError("who may collude belongs to sums over a cohort")
    planned = (spec.radii, spec.intercept_rounds, spec.intercept_units, spec.client_rows)
    if spec.variant is not Variant.PLANNED:
        if any(planned):
            raise ValueError("radii, intercept rounds and rows belong to the planned variant")
        return
    if not spec.intercept or spec.radius_bits < 18:
        raise ValueError("the planned variant has an intercept and at least 18 radius bits")
    if not 1 <= spec.client_rows <= MAX_CLIENTS:
        raise ValueError("the planned variant needs the expected rows of a client")
    if not 1 <= spec.intercept_rounds <= min(spec.n_clients, spec.rounds - 1):
        raise ValueError("a planned job has both kinds of rounds, and a client for each")
    if len(spec.radii) != spec.steps or not all(1 <= each <= WHOLE for each in spec.radii):
        raise ValueError(f"every round of displacements has a radius in 1 .. {WHOLE}")
    if spec.intercept_units < 1:
        raise ValueError("an intercept needs a price")
