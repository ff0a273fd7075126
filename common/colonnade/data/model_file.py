"""The layout of model.json, as it is read and checked."""

from typing import Any, Literal, TypeAlias

from msgspec.structs import asdict

from colonnade.core.config import Finite, Strict, Text
from colonnade.data.model_columns import (
    ModelEncoding,
    ModelFeature,
    ModelLabel,
)

LossName: TypeAlias = Literal["squared", "logistic", "hinge"]


class _FeatureTable(ModelFeature, frozen=True, kw_only=True):
    coef: Finite


class ModelFile(Strict, frozen=True):
    """The fields of model.json."""

    format: str
    version: int
    job_id: Text
    private: bool
    loss: LossName
    label: ModelLabel
    intercept_scaled: Finite
    intercept: Finite
    features: tuple[_FeatureTable, ...]
    encodings: tuple[ModelEncoding, ...] = ()


def plain(column: ModelLabel | ModelFeature) -> dict[str, Any]:
    """Return a column as the file has it: floats, texts and lists."""
    facts = asdict(column)
    levels = {"levels": list(facts.pop("levels"))} if "levels" in facts else {}
    numbers = {key: fact if isinstance(fact, str) else float(fact) for key, fact in facts.items()}
    return numbers | levels


def without_coef(table: _FeatureTable) -> ModelFeature:
    """Return the column that an entry of the file describes."""
    facts = asdict(table)
    facts.pop("coef")
    return ModelFeature(**facts)
