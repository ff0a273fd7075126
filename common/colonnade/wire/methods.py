"""Between a job's method and its message.

Numbers with the same name in the message and in the specification are copied by name; the rest is
choices, and what each party brings, which the job's members say.
"""

import math
from collections.abc import Sequence
from typing import TypeVar

from colonnade.linear.losses import LOGISTIC, SQUARED
from colonnade.linear.penalties import Penalty
from colonnade.methods.admm.method import AdmmMethod, ClientPart
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.admm.spec import Sampling as ClientSampling
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec, Labels, Loss, Sampling
from colonnade.methods.job import Member, Method
from colonnade.methods.moments.spec import MomentsSpec, Part
from colonnade.v1 import job_pb2

K = TypeVar("K")
V = TypeVar("V")

_LABELS = {
    job_pb2.LABELS_SHARED: Labels.SHARED,
    job_pb2.LABELS_SKETCHED: Labels.SKETCHED,
}
_LOSSES = {
    job_pb2.LOSS_SQUARED: Loss.SQUARED,
    job_pb2.LOSS_LOGISTIC: Loss.LOGISTIC,
}
_SAMPLINGS = {
    job_pb2.SAMPLING_ALL: Sampling.ALL,
    job_pb2.SAMPLING_SERIAL: Sampling.SERIAL,
    job_pb2.SAMPLING_NICE: Sampling.NICE,
    job_pb2.SAMPLING_GIVEN: Sampling.GIVEN,
}
_CLIENT_LOSSES = {job_pb2.LOSS_SQUARED: SQUARED, job_pb2.LOSS_LOGISTIC: LOGISTIC}
_CLIENT_SAMPLINGS = {
    job_pb2.CLIENT_SAMPLING_FIXED: ClientSampling.FIXED,
    job_pb2.CLIENT_SAMPLING_POISSON: ClientSampling.POISSON,
}
_FRANK_WOLFE = (
    "rounds",
    "sketch_dim",
    "sketch_entries",
    "dense_sketch",
    "select_units",
    "share_units",
    "label_units",
    "mean_units",
    "parties_per_round",
    "features_per_round",
    "prior",
    "clip",
    "share_clip",
    "local_rounds",
)
_MOMENTS = (
    "mean_units",
    "gram_units",
    "share_units",
    "cross_units",
    "label_units",
    "marginal_units",
    "screen_units",
    "directions",
    "probes",
    "sketch_dim",
    "keep",
    "radius",
    "penalty",
    "label_weight",
    "reach",
    "share_clip",
    "probe_clip",
    "cross_clip",
)
_ADMM = (
    "rounds",
    "sampled",
    "minimum",
    "participations",
    "release_units",
    "gamma",
    "lipschitz",
    "step",
    "dual_weight",
    "intercept",
    "radius_bits",
    "coarse",
)


def put_method(message: job_pb2.JobSpec, method: Method) -> None:
    """Write a method into a job's message."""
    match method:
        case FrankWolfeSpec():
            message.frank_wolfe.CopyFrom(_frank_wolfe_to_proto(method))
        case MomentsSpec():
            message.moments.CopyFrom(_moments_to_proto(method))
        case AdmmMethod():
            message.admm.CopyFrom(_admm_to_proto(method))


def method_of(message: job_pb2.JobSpec, members: Sequence[Member]) -> Method:
    """Read a job's method.

    Raises
    ------
    ValueError
        If it cannot be used.
    KeyError
        If it leaves a choice open.
    """
    match message.WhichOneof("method"):
        case "frank_wolfe":
            return _frank_wolfe_from_proto(message, members)
        case "moments":
            return _moments_from_proto(message, members)
        case "admm":
            return _admm_from_proto(message, members)
        case _:
            raise ValueError("it names no method")


def _frank_wolfe_to_proto(method: FrankWolfeSpec) -> job_pb2.FrankWolfe:
    encoded = job_pb2.FrankWolfe(
        labels=_key(_LABELS, method.labels),
        loss=_key(_LOSSES, method.loss),
        sampling=_key(_SAMPLINGS, method.sampling),
        **{name: getattr(method, name) for name in _FRANK_WOLFE},
    )
    for block in method.blocks:
        encoded.blocks.add(radius=block.radius, shares=block.shares, probability=block.probability)
    return encoded


def _frank_wolfe_from_proto(message: job_pb2.JobSpec, members: Sequence[Member]) -> FrankWolfeSpec:
    method = message.frank_wolfe
    if len(method.blocks) != len(members):
        raise ValueError("it has other blocks than members")
    blocks = tuple(
        Block(
            party=member.party,
            features=member.features,
            radius=block.radius,
            shares=block.shares,
            holds_label=member.holds_label,
            probability=block.probability,
        )
        for member, block in zip(members, method.blocks, strict=True)
    )
    return FrankWolfeSpec(
        n_rows=message.n_rows,
        blocks=blocks,
        labels=_LABELS[method.labels],
        loss=_LOSSES[method.loss],
        sampling=_SAMPLINGS[method.sampling],
        **{name: getattr(method, name) for name in _FRANK_WOLFE},
    )


def _moments_to_proto(method: MomentsSpec) -> job_pb2.Moments:
    return job_pb2.Moments(
        labels=_key(_LABELS, method.labels),
        loss=_key(_LOSSES, method.loss),
        **{name: getattr(method, name) for name in _MOMENTS},
    )


def _moments_from_proto(message: job_pb2.JobSpec, members: Sequence[Member]) -> MomentsSpec:
    method = message.moments
    return MomentsSpec(
        n_rows=message.n_rows,
        parts=tuple(Part(each.party, each.features, each.holds_label) for each in members),
        labels=_LABELS[method.labels],
        loss=_LOSSES[method.loss],
        **{name: getattr(method, name) for name in _MOMENTS},
    )


def _admm_to_proto(method: AdmmMethod) -> job_pb2.Admm:
    spec, penalty = method.spec, method.spec.penalty
    return job_pb2.Admm(
        sampling=_key(_CLIENT_SAMPLINGS, spec.sampling),
        loss=_key(_CLIENT_LOSSES, spec.loss),
        l1=penalty.l1,
        l2=penalty.l2,
        box=0.0 if math.isinf(penalty.bound) else penalty.bound,
        round_timeout_s=method.round_timeout_s,
        **{name: getattr(spec, name) for name in _ADMM},
    )


def _admm_from_proto(message: job_pb2.JobSpec, members: Sequence[Member]) -> AdmmMethod:
    method = message.admm
    if not members:
        raise ValueError("it has no parties")
    spec = AdmmSpec(
        n_clients=message.n_rows,
        n_features=len(members[0].features),
        sampling=_CLIENT_SAMPLINGS[method.sampling],
        loss=_CLIENT_LOSSES[method.loss],
        penalty=Penalty(method.l1, method.l2, method.box or math.inf),
        **{name: getattr(method, name) for name in _ADMM},
    )
    parts = tuple(ClientPart(each.party, each.features, each.clients) for each in members)
    return AdmmMethod(parts, spec, method.round_timeout_s)


def _key(table: dict[K, V], value: V) -> K:
    return next(key for key, found in table.items() if found is value)
