"""A model as an ONNX graph, for runtimes that know nothing of Colonnade. Needs the extra ``onnx``.

Inputs are the features that have a coefficient, each a column of doubles under its full name, after
encoding; NaN is missing. Outputs are ``score`` and ``prediction``, computed with the operations of
`LinearModel.predict` in the same order: on the grid, in integers, until the last step.
"""

from typing import Any

import numpy as np

from colonnade.core.arrays import AnyArray
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID
from colonnade.data.integer_scores import IntegerScores
from colonnade.data.model import LinearModel

_OPSET = 18
_IR_VERSION = 9


def to_onnx(model: LinearModel) -> Any:
    """Return the model as an ``onnx.ModelProto``."""
    try:
        from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415 (an extra)
    except ImportError:
        raise BadInput("ONNX needs a package that is not here: install colonnade[onnx]") from None
    used = [feature for feature in model.features if feature.coef_scaled]
    if not used:
        raise BadInput("the model uses no feature; there is nothing to compute")
    integers = IntegerScores.of(model)
    coef = dict(zip((each.full_name for each in model.features), integers.coef, strict=True))
    bounds = [feature.bounds for feature in used]
    constants: dict[str, AnyArray] = {
        "fill": np.array([feature.fill for feature in used]),
        "low": np.array([each.low for each in bounds]),
        "high": np.array([each.high for each in bounds]),
        "middle": np.array([each.middle for each in bounds]),
        "half_width": np.array([each.half_width for each in bounds]),
        "least": np.array(-1.0),
        "most": np.array(1.0),
        "grid": np.array(float(GRID)),
        "coef": np.array([coef[feature.full_name] for feature in used], np.int64),
        "across": np.array([1], np.int64),
        "intercept": np.array([integers.intercept * GRID], np.int64),
        "unit": np.array(np.ldexp(1.0, -(integers.bits + GRID.bit_length() - 1))),
    }
    names = [feature.full_name for feature in used]
    nodes = [
        helper.make_node("Concat", names, ["rows"], axis=1),
        helper.make_node("IsNaN", ["rows"], ["missing"]),
        helper.make_node("Where", ["missing", "fill", "rows"], ["filled"]),
        helper.make_node("Max", ["filled", "low"], ["above"]),
        helper.make_node("Min", ["above", "high"], ["clipped"]),
        helper.make_node("Sub", ["clipped", "middle"], ["centred"]),
        helper.make_node("Div", ["centred", "half_width"], ["divided"]),
        helper.make_node("Max", ["divided", "least"], ["raised"]),
        helper.make_node("Min", ["raised", "most"], ["scaled"]),
        helper.make_node("Mul", ["scaled", "grid"], ["wide"]),
        helper.make_node("Round", ["wide"], ["rounded"]),
        helper.make_node("Cast", ["rounded"], ["places"], to=TensorProto.INT64),
        helper.make_node("Mul", ["places", "coef"], ["products"]),
        helper.make_node("ReduceSum", ["products", "across"], ["sums"], keepdims=1),
        helper.make_node("Add", ["sums", "intercept"], ["total"]),
        helper.make_node("Cast", ["total"], ["whole"], to=TensorProto.DOUBLE),
        helper.make_node("Mul", ["whole", "unit"], ["score"]),
        *_prediction(model, helper, constants),
    ]
    graph = helper.make_graph(
        nodes,
        f"colonnade {model.job_id[:12]}",
        [helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["rows", 1]) for name in names],
        [
            helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["rows", 1])
            for name in ("score", "prediction")
        ],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(
        graph,
        producer_name="colonnade",
        doc_string=f"{model.loss} model of {model.label.name}, job {model.job_id}",
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
    )


def _prediction(model: LinearModel, helper: Any, constants: dict[str, AnyArray]) -> list[Any]:
    """Return the nodes from scores to predictions, and add what they need to the constants."""
    if model.loss == "squared":
        bounds = model.label.bounds
        constants |= {
            "label_middle": np.array(bounds.middle),
            "label_half": np.array(bounds.half_width),
        }
        return [
            helper.make_node("Mul", ["score", "label_half"], ["moved"]),
            helper.make_node("Add", ["moved", "label_middle"], ["prediction"]),
        ]
    constants["zero"] = np.array(0.0)
    if model.loss == "hinge":
        constants |= {
            "label_low": np.array(model.label.low),
            "label_high": np.array(model.label.high),
        }
        return [
            helper.make_node("Greater", ["score", "zero"], ["positive"]),
            helper.make_node("Where", ["positive", "label_high", "label_low"], ["prediction"]),
        ]
    constants["one"] = np.array(1.0)
    return [
        helper.make_node("Abs", ["score"], ["size"]),
        helper.make_node("Neg", ["size"], ["fall"]),
        helper.make_node("Exp", ["fall"], ["tail"]),  # never overflows
        helper.make_node("GreaterOrEqual", ["score", "zero"], ["likely"]),
        helper.make_node("Where", ["likely", "one", "tail"], ["part"]),
        helper.make_node("Add", ["tail", "one"], ["all"]),
        helper.make_node("Div", ["part", "all"], ["prediction"]),
    ]
