"""What a job over clients can choose: how clients are drawn, what they compute, what leaves."""

import enum
from dataclasses import dataclass


class Sampling(enum.Enum):
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


@dataclass(frozen=True, slots=True)
class CohortSize:
    """How many clients a round draws, needs, and how often it may ask one."""

    sampled: int
    minimum: int
    limit: int
