"""The options of a job over clients, and the specification that they ask for."""

import argparse

from colonnade.cli.amounts import delta_of
from colonnade.core.errors import BadInput
from colonnade.linear.losses import LOSSES
from colonnade.linear.penalties import Penalty
from colonnade.methods.admm.plan import participations_of, release_units
from colonnade.methods.admm.spec import AdmmSpec, Sampling

REGULARISERS = ("none", "l1", "l2", "elastic-net", "box")
_MAX_STRENGTH = 1e6  # far beyond what leaves any coefficient
_LEAST, _MOST = 2.0**-40, 2.0**40


def add_method_options(parser: argparse.ArgumentParser) -> None:
    """Add what describes the job."""
    parser.add_argument("--sampled", type=int, help="clients of a round; default a fifth")
    parser.add_argument("--sampling", choices=("fixed", "poisson"), default="fixed")
    parser.add_argument("--minimum", type=int, help="least answers of a round; default half")
    parser.add_argument("--rounds", type=int, default=10, help="default 10")
    parser.add_argument("--regulariser", choices=REGULARISERS, default="l2")
    parser.add_argument("--strength", type=float, help="of it; default 0.001, of a box 1")
    parser.add_argument("--gamma", type=float, default=5.0, help="proximal step; default 5")
    parser.add_argument("--lipschitz", type=float, default=0.1, help="clip over gamma; default 0.1")
    parser.add_argument("--step", type=float, default=0.5, help="lambda; default 0.5")
    parser.add_argument(
        "--dual-weight",
        type=float,
        default=0.0,
        help="of a client's dual in what it is sent; 1 is the published algorithm, which strong "
        "noise throws off; default 0",
    )
    parser.add_argument("--epsilon", type=float, default=8.0, help="of each client; default 8")
    parser.add_argument("--delta", type=float, help="default min(1e-6, 1 / (10 clients))")


def check_method(arguments: argparse.Namespace) -> None:
    """Refuse numbers that no job over clients can have, each by its option."""
    given = vars(arguments)
    ranges = {
        "--epsilon": (0.0 < given["epsilon"] < 1000.0, "above 0 and below 1000"),
        "--gamma": (_LEAST <= given["gamma"] <= _MOST, "between 2**-40 and 2**40"),
        "--lipschitz": (_LEAST <= given["lipschitz"] <= _MOST, "between 2**-40 and 2**40"),
        "--step": (2.0**-17 < given["step"] <= 1.0, "above 2**-17 and not above 1"),
        "--dual-weight": (0.0 <= given["dual_weight"] <= 1.0, "between 0 and 1"),
        "--rounds": (1 <= given["rounds"] <= 10**6, "between 1 and 1000000"),
        "--strength": (
            given["strength"] is None or 0.0 <= given["strength"] <= _MAX_STRENGTH,
            f"between 0 and {_MAX_STRENGTH:.0f}",
        ),
    }
    for option, (fits, where) in ranges.items():
        if not fits:
            raise BadInput(f"{option} must lie {where}")
    delta_of(arguments)
    if arguments.strength is not None and arguments.regulariser == "none":
        raise BadInput("--strength needs a --regulariser")


def sizes_of(arguments: argparse.Namespace, clients: int) -> tuple[int, int]:
    """Return how many clients a round draws and how many answers it needs."""
    sampled = max(1, clients // 5) if arguments.sampled is None else arguments.sampled
    if not 1 <= sampled <= clients:
        raise BadInput(f"--sampled must lie between 1 and the {clients} clients")
    minimum = max(1, sampled // 2) if arguments.minimum is None else arguments.minimum
    if not 1 <= minimum <= sampled:
        raise BadInput(f"--minimum must lie between 1 and the {sampled} clients of a round")
    return sampled, minimum


def _limit(rounds: int, sampled: int, minimum: int, clients: int) -> int:
    """Return how often a client may answer: the least with which every round has its minimum.

    Before the last round ``(rounds - 1) sampled`` answers came, so at most that many over the limit
    of the clients are at it, however the drawings fell; the minimum must be left.
    """
    limit = participations_of(rounds, sampled, clients)
    while limit < rounds and clients - (rounds - 1) * sampled // limit < minimum:
        limit += 1
    return limit


def spec_of(arguments: argparse.Namespace, *, clients: int, features: int) -> AdmmSpec:
    """Return the specification that the options ask for."""
    check_method(arguments)
    sampled, minimum = sizes_of(arguments, clients)
    most = _limit(arguments.rounds, sampled, minimum, clients)
    try:
        return AdmmSpec(
            n_clients=clients,
            n_features=features,
            rounds=arguments.rounds,
            sampled=sampled,
            release_units=release_units(arguments.epsilon, delta_of(arguments, clients), most),
            gamma=arguments.gamma,
            lipschitz=arguments.lipschitz,
            step=arguments.step,
            loss=LOSSES[arguments.loss],
            penalty=_penalty(arguments),
            intercept=True,
            sampling=Sampling(arguments.sampling),
            minimum=minimum,
            participations=most,
            dual_weight=arguments.dual_weight,
        )
    except ValueError as error:
        raise BadInput(str(error)) from None


def _penalty(arguments: argparse.Namespace) -> Penalty:
    default = 1.0 if arguments.regulariser == "box" else 1e-3
    strength = default if arguments.strength is None else arguments.strength
    match arguments.regulariser:
        case "none":
            return Penalty()
        case "l1":
            return Penalty(l1=strength)
        case "l2":
            return Penalty(l2=strength)
        case "elastic-net":
            return Penalty(l1=strength / 2.0, l2=strength / 2.0)
        case _:
            return Penalty(bound=strength)
