"""Privacy accounting of federated ADMM: enforced by each client, and amplified by sampling.

Local: a client's ledger charges every participation and its cap ends it, whatever anyone else does.

Central: if only the model were published, by a trusted coordinator that samples in secret, one
client's data would be blurred by the noise of all clients of a round and by the doubt whether it
took part. That figure comes from dp-accounting, rests on the premises below, which nobody enforces,
and is for reports only. (The bound ``16 alpha K L**2 gamma**2 / (sigma**2 n**2)`` quoted for this
algorithm does not hold with more than two sampled clients and is not used.)
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

from colonnade.core.errors import BadInput
from colonnade.methods.admm.choices import Aggregate, ClientSampling
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.privacy.accounting import epsilon_of, rho_from_units

CENTRAL_LABEL = "central (model-based, not enforced)"
CENTRAL_PREMISES = (
    "only the models are seen: a trusted coordinator or secure aggregation hides the answers",
    "the coordinator samples uniformly, in secret, and asks nobody else",
    "limits on participations, which make sampling depend on the past, are ignored",
    "every round adds up the honest noise of at least the job's minimum of clients",
    "whether a client answers does not depend on its data, and no answer comes late",
    "rounds compose although a client's dual remembers when it took part (assumed, not proved)",
    "discrete Gaussian noise is treated as continuous",
)


def local_rho(spec: AdmmSpec, participations: int) -> float:
    """Return the rho that so many participations cost a client: enforced by its ledger."""
    return rho_from_units(spec.mechanism.cost * participations)


def local_epsilon(spec: AdmmSpec, participations: int, delta: float) -> float:
    """Return the epsilon of so many participations at ``delta``."""
    return epsilon_of(local_rho(spec, participations), delta)


def noise_multiplier(spec: AdmmSpec) -> float:
    """Return noise over replace-one sensitivity in the sum of a round's answers.

    One client moves the sum by at most ``2 R``; it carries the noise of at least the minimum, or
    where hosts release sums of at least one of them, or in a secure sum that of the honest hosts.
    """
    return math.sqrt(spec.mechanism.sigma2 * _noises(spec, 1)) / (2 * spec.radius)


def _noises(spec: AdmmSpec, round_: int) -> int:
    """Return how many noises the answers of a round have at least."""
    if spec.cohort_rules is not None:
        return spec.cohort_rules.honest
    return spec.cohort(round_).minimum if spec.aggregate is Aggregate.NONE else 1


def central_epsilons(spec: AdmmSpec, rounds: Sequence[int], delta: float) -> list[float]:
    """Return the model-based epsilon after each of so many ``rounds``; see the premises.

    Fixed-size sampling: Rényi bounds for sampling without replacement (Wang, Balle and
    Kasiviswanathan 2019). Poisson sampling: the privacy loss distribution. Everyone sampled: plain
    zCDP. The relation is always the replacement of one client.
    """
    ratio = noise_multiplier(spec)
    # Of the rounds that sample, and what those of the intercept cost, which ask everybody once.
    parts = [(min(count, spec.steps), _intercept_rho(spec, count)) for count in rounds]
    if spec.sampled == spec.n_clients:
        return [epsilon_of(count / (2.0 * ratio**2) + rho, delta) for count, rho in parts]
    if spec.sampling is ClientSampling.POISSON:
        rate = spec.sampled / spec.n_clients
        return [_poisson(ratio, rate, count, rho, delta) for count, rho in parts]
    orders, curve = _without_replacement(ratio, spec.n_clients, spec.sampled)
    rdp = _dp_accounting().rdp
    return [
        float(
            rdp.compute_epsilon(
                orders,
                [count * each + rho * order for each, order in zip(curve, orders, strict=True)],
                delta,
            )[0]
        )
        for count, rho in parts
    ]


def _intercept_rho(spec: AdmmSpec, rounds: int) -> float:
    """Return what the models after ``rounds`` say of a client's own intercept, in zCDP."""
    if rounds <= spec.steps or spec.own_intercept is None:
        return 0.0
    return rho_from_units(spec.own_intercept.cost) / _noises(spec, spec.rounds)


@functools.lru_cache(maxsize=64)
def _without_replacement(
    ratio: float, n_clients: int, sampled: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return orders and the Rényi divergence of one round at each."""
    events = _dp_accounting()
    relation = events.NeighboringRelation.REPLACE_ONE
    accountant = events.rdp.RdpAccountant(neighboring_relation=relation)
    # This accountant takes the noise relative to the replace-one sensitivity.
    event = events.GaussianDpEvent(ratio)
    accountant.compose(events.SampledWithoutReplacementDpEvent(n_clients, sampled, event))
    orders = tuple(float(order) for order in accountant.orders)
    return orders, tuple(float(each) for each in accountant.rdp)


@functools.lru_cache(maxsize=64)
def _poisson(ratio: float, rate: float, rounds: int, rho: float, delta: float) -> float:
    events = _dp_accounting()
    relation = events.NeighboringRelation.REPLACE_ONE
    accountant = events.pld.PLDAccountant(relation)
    # This one doubles the sensitivity under replacement, so it is given twice the noise.
    event = events.PoissonSampledDpEvent(rate, events.GaussianDpEvent(2.0 * ratio))
    accountant.compose(event, rounds)
    if rho:  # a Gaussian mechanism of so much zCDP
        accountant.compose(events.GaussianDpEvent(2.0 / math.sqrt(2.0 * rho)))
    return float(accountant.get_epsilon(delta))


def _dp_accounting() -> Any:
    """Import dp-accounting when it is needed: it takes over a second."""
    try:
        import dp_accounting
        from dp_accounting import pld, rdp  # noqa: F401
    except ImportError:
        raise BadInput(
            "the model-based central figure needs dp-accounting: pip install dp-accounting==0.6.0"
        ) from None
    return dp_accounting
