"""Classification losses."""

from __future__ import annotations

from rushlight_graph.onnx.builder import Builder, Val
from rushlight_graph.onnx.calls import Call, exports
from rushlight_graph.onnx.graph import UnsupportedError

_REDUCTIONS = ("none", "mean", "sum")


@exports("nll_loss", "_cross_entropy")
def nll_loss(b: Builder, call: Call) -> Val:
    x, target, weight = call.tensor("input"), call.tensor("target"), call.optional("weight")
    reduction = _REDUCTIONS[call["reduction"]]
    if call.name == "_cross_entropy" and call["label_smoothing"]:
        raise UnsupportedError("label_smoothing is not supported")
    single = call.rank("input") == 1
    if single:
        x = b.unsqueeze(x, [0])
        target = target if call.rank("target") else b.unsqueeze(target, [0])
    name = "NegativeLogLikelihoodLoss" if call.name == "nll_loss" else "SoftmaxCrossEntropyLoss"
    made = b.op(name, x, target, weight, ignore_index=call["ignore_index"], reduction=reduction)
    return b.reshape(made, call.result.sizes) if single else made
