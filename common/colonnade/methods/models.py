"""A job's model in the users' units, from coefficients on scaled features."""

from collections.abc import Mapping, Sequence
from typing import cast

from colonnade.core.arrays import FloatArray
from colonnade.data.model import LinearModel, ModelEncoding, ModelFeature, ModelLabel
from colonnade.data.model_file import LossName
from colonnade.methods.base import Member
from colonnade.methods.job import Job


def linear_model(
    job: Job, job_id: str, coef: Mapping[str, FloatArray], intercept: float
) -> LinearModel:
    """Return a job's model from coefficients on scaled features and label, by party."""
    features = tuple(
        feature
        for member in job.members
        for feature in model_features(member, member.party, coef[member.party].tolist())
    )
    return LinearModel(
        job_id=job_id,
        loss=cast("LossName", job.method.loss.value),
        label=model_label(job),
        intercept_scaled=intercept,
        features=features,
        private=True,
        encodings=tuple(
            encoding
            for member in job.members
            for encoding in model_encodings(member, member.party, job.label)
        ),
    )


def model_features(member: Member, party: str, coef: Sequence[float]) -> tuple[ModelFeature, ...]:
    """Return the features of one member as those of ``party`` in a model."""
    groups = member.groups or ("",) * len(member.features)
    columns = zip(member.features, member.bounds, member.fills, coef, groups, strict=True)
    return tuple(
        ModelFeature(party, name, bounds.low, bounds.high, fill, float(value), group)
        for name, bounds, fill, value, group in columns
    )


def model_encodings(member: Member, party: str, label: str) -> tuple[ModelEncoding, ...]:
    """Return how raw columns of one member, but for the label, become its features."""
    return tuple(
        ModelEncoding.of(party, encoding) for encoding in member.encodings if encoding.name != label
    )


def model_label(job: Job) -> ModelLabel:
    """Return the label, with the texts that its values stand for if it has any."""
    levels = next(
        (
            encoding.classes
            for member in job.members
            for encoding in member.encodings
            if member.holds_label and encoding.name == job.label
        ),
        (),
    )
    return ModelLabel(job.label, job.label_bounds.low, job.label_bounds.high, levels)
