"""Training with PaddlePaddle in its dynamic mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import paddle
from paddle.nn import functional as F

from ..catalogue import ENTRIES
from ..protocol import Request
from ..weights import Array, read
from .networks import NETWORKS
from .operations import Tensor, kind

SWITCHES = ()


class Operations:
    """Images and filters have PyTorch's layouts; matrices are (in, out)."""

    def __init__(self, arrays: dict[str, Array], dropout: bool) -> None:
        self._drops = dropout
        self.weights: dict[str, Any] = {}
        for name in list(arrays):
            array = arrays.pop(name)
            if kind(name, array) == "matrix" and ".weight_" not in name:  # LSTM weights have PyTorch's layout
                array = array.T
            self.weights[name] = paddle.create_parameter(array.shape, "float32", name=name)
            self.weights[name].set_value(array)
        self._statistics: dict[str, tuple[Tensor, Tensor]] = {}
        self._recurrent: dict[str, Any] = {}

    def _bias(self, name: str) -> Tensor | None:
        return self.weights.get(f"{name}.bias")

    def conv(self, x: Tensor, name: str, stride: int = 1, padding: int = 0, groups: int = 1) -> Tensor:
        return F.conv2d(x, self.weights[f"{name}.weight"], self._bias(name), stride, padding, groups=groups)

    def batch_norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        if name not in self._statistics:
            self._statistics[name] = (paddle.zeros(weight.shape), paddle.ones(weight.shape))
        mean, variance = self._statistics[name]
        # Paddle's momentum is the fraction that is kept.
        return F.batch_norm(x, mean, variance, weight, bias, training=True, momentum=0.9, epsilon=1e-5)

    def layer_norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return F.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)

    def relu(self, x: Tensor) -> Tensor:
        return F.relu(x)

    def relu6(self, x: Tensor) -> Tensor:
        return F.relu6(x)

    def gelu(self, x: Tensor) -> Tensor:
        return F.gelu(x)

    def max_pool(self, x: Tensor, size: int, stride: int, padding: int = 0) -> Tensor:
        return F.max_pool2d(x, size, stride, padding)

    def average(self, x: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(x, 1).flatten(1)

    def flatten(self, x: Tensor) -> Tensor:
        return x.flatten(1)

    def rows(self, x: Tensor) -> Tensor:
        return x.flatten(2).transpose([0, 2, 1])

    def linear(self, x: Tensor, name: str) -> Tensor:
        return F.linear(x, self.weights[f"{name}.weight"], self._bias(name))

    def dropout(self, x: Tensor, p: float) -> Tensor:
        return F.dropout(x, p) if self._drops and p > 0.0 else x

    def embedding(self, indices: Tensor, name: str) -> Tensor:
        return F.embedding(indices, self.weights[f"{name}.weight"])

    def logits_by_embedding(self, x: Tensor, name: str) -> Tensor:
        return paddle.matmul(x, self.weights[f"{name}.weight"], transpose_y=True)

    def concat(self, parts: Sequence[Tensor]) -> Tensor:
        return paddle.concat(list(parts), -1)

    def lstm(self, x: Tensor, name: str, bidirectional: bool = False) -> Tensor:
        if name not in self._recurrent:
            size = self.weights[f"{name}.weight_hh_l0"].shape[1]
            direction = "bidirect" if bidirectional else "forward"
            layer = paddle.nn.LSTM(x.shape[-1], size, direction=direction)
            for own, parameter in layer.named_parameters():
                parameter.set_value(self.weights[f"{name}.{own}"])
                self.weights[f"{name}.{own}"] = parameter
            self._recurrent[name] = layer
        return self._recurrent[name](x)[0]

    def normed_attention(self, queries: Tensor, keys: Tensor, name: str) -> Tensor:
        q, k = self.linear(queries, f"{name}.query"), self.linear(keys, f"{name}.key")
        sums = q.unsqueeze(2) + k.unsqueeze(1) + self.weights[f"{name}.bias"]
        direction = self.weights[f"{name}.direction"]
        direction = direction * (self.weights[f"{name}.scale"] / paddle.linalg.norm(direction))
        return paddle.bmm(F.softmax(paddle.matmul(paddle.tanh(sums), direction), -1), keys)

    def self_attention(self, qkv: Tensor, heads: int, causal: bool, p: float) -> Tensor:
        batch, length, size = qkv.shape
        q, k, v = (
            qkv.reshape([batch, length, 3, heads, size // 3 // heads]).transpose([2, 0, 3, 1, 4]).unbind(0)
        )
        scores = paddle.matmul(q * (size // 3 // heads) ** -0.5, k, transpose_y=True)
        if causal:
            scores = scores + paddle.triu(paddle.full([length, length], -1e9), 1)
        y = paddle.matmul(self.dropout(F.softmax(scores, -1), p), v)
        return y.transpose([0, 2, 1, 3]).reshape([batch, length, size // 3])

    def shift(self, x: Tensor, name: str) -> Tensor:
        return x + self.weights[name]

    def prepend(self, x: Tensor, name: str) -> Tensor:
        token = self.weights[name]
        return paddle.concat((token.expand([x.shape[0], 1, token.shape[2]]), x), 1)

    def first(self, x: Tensor) -> Tensor:
        return x[:, 0]

    def cross_entropy(self, logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
        loss = F.cross_entropy(logits, labels)
        return (1 - smoothing) * loss - smoothing * F.log_softmax(logits, -1).mean() if smoothing else loss

    def binary_cross_entropy(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(logits.flatten(), targets)


def prepare(request: Request) -> Callable[[], float]:
    paddle.set_device("cpu")
    paddle.seed(0)
    entry, network = ENTRIES[request.workload], NETWORKS[request.workload]
    arrays, inputs = read(request.start, request.samples)
    ops = Operations(arrays, request.dropout)
    batch = tuple(paddle.to_tensor(array) for array in inputs)
    if any(".weight_hh" in name for name in ops.weights):
        with paddle.no_grad():  # makes the LSTM's layers, whose weights the optimizer needs
            network(ops, *batch)
    weights = list(ops.weights.values())
    if entry.optimizer == "sgd":
        optimizer = paddle.optimizer.Momentum(entry.rate, 0.9, parameters=weights)
    elif entry.optimizer == "adamw":
        optimizer = paddle.optimizer.AdamW(entry.rate, parameters=weights, weight_decay=0.01)
    else:
        optimizer = paddle.optimizer.Adam(entry.rate, parameters=weights)

    def step() -> float:
        loss = network(ops, *batch)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return float(loss)

    return step
