"""Training with MXNet: the network is one symbol, which an executor runs forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mxnet as mx
import numpy as np

from ..catalogue import ENTRIES
from ..protocol import Request
from ..weights import Array, read
from .networks import NETWORKS
from .operations import Tensor

SWITCHES = ()

_sym = mx.sym


class Operations:
    """Images, filters and matrices have PyTorch's layouts. samples: the size of a batch, since symbols have no shape."""

    def __init__(self, arrays: dict[str, Array], dropout: bool, samples: int) -> None:
        self._drops, self._samples = dropout, samples
        self.weights = dict(arrays)
        self._hidden: dict[str, int] = {}
        for name in [name for name in arrays if name.endswith(".weight_hh_l0")]:
            self._pack(name.removesuffix(".weight_hh_l0"))
        self.symbols: dict[str, Any] = {}
        self.statistics: dict[str, Array] = {}

    def _pack(self, name: str) -> None:
        """Put an LSTM's weights into the vector that MXNet's operator takes: matrices of all directions, then biases."""
        self._hidden[name] = self.weights[f"{name}.weight_hh_l0"].shape[1]
        ends = [end for end in ("_l0", "_l0_reverse") if f"{name}.weight_hh{end}" in self.weights]
        order = [
            f"{name}.{what}_{part}{end}"
            for what in ("weight", "bias")
            for end in ends
            for part in ("ih", "hh")
        ]
        self.weights[f"{name}.packed"] = np.concatenate([self.weights.pop(one).ravel() for one in order])

    def weight(self, name: str) -> Any:
        if name not in self.symbols:
            self.symbols[name] = _sym.Variable(name, shape=self.weights[name].shape)
        return self.symbols[name]

    def _bias(self, name: str) -> dict[str, Any]:
        has = f"{name}.bias" in self.weights
        return {"bias": self.weight(f"{name}.bias")} if has else {"no_bias": True}

    def conv(self, x: Tensor, name: str, stride: int = 1, padding: int = 0, groups: int = 1) -> Tensor:
        outputs, _, *kernel = self.weights[f"{name}.weight"].shape
        return _sym.Convolution(
            x, self.weight(f"{name}.weight"), num_filter=outputs, kernel=tuple(kernel), stride=(stride, stride),
            pad=(padding, padding), num_group=groups, **self._bias(name),
        )  # fmt: skip

    def batch_norm(self, x: Tensor, name: str) -> Tensor:
        moving = [f"{name}.moving_{what}" for what in ("mean", "var")]
        size = self.weights[f"{name}.weight"].shape
        self.statistics |= dict(zip(moving, (np.zeros(size, "f4"), np.ones(size, "f4")), strict=True))
        return _sym.BatchNorm(
            x, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"), *map(_sym.Variable, moving),
            eps=1e-5, momentum=0.9, fix_gamma=False,
        )  # fmt: skip

    def layer_norm(self, x: Tensor, name: str) -> Tensor:
        return _sym.LayerNorm(
            x, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"), axis=-1, eps=1e-5
        )

    def relu(self, x: Tensor) -> Tensor:
        return _sym.Activation(x, act_type="relu")

    def relu6(self, x: Tensor) -> Tensor:
        return _sym.clip(x, 0, 6)

    def gelu(self, x: Tensor) -> Tensor:
        return _sym.LeakyReLU(x, act_type="gelu")

    def max_pool(self, x: Tensor, size: int, stride: int, padding: int = 0) -> Tensor:
        return _sym.Pooling(
            x, kernel=(size, size), pool_type="max", stride=(stride, stride), pad=(padding, padding)
        )

    def average(self, x: Tensor) -> Tensor:
        return _sym.flatten(_sym.Pooling(x, kernel=(1, 1), pool_type="avg", global_pool=True))

    def flatten(self, x: Tensor) -> Tensor:
        return _sym.flatten(x)

    def rows(self, x: Tensor) -> Tensor:
        return _sym.transpose(_sym.reshape(x, shape=(0, 0, -1)), axes=(0, 2, 1))

    def linear(self, x: Tensor, name: str) -> Tensor:
        outputs = self.weights[f"{name}.weight"].shape[0]
        return _sym.FullyConnected(
            x, self.weight(f"{name}.weight"), num_hidden=outputs, flatten=False, **self._bias(name)
        )

    def dropout(self, x: Tensor, p: float) -> Tensor:
        return _sym.Dropout(x, p=p) if self._drops and p > 0.0 else x

    def embedding(self, indices: Tensor, name: str) -> Tensor:
        rows, size = self.weights[f"{name}.weight"].shape
        return _sym.Embedding(indices, self.weight(f"{name}.weight"), input_dim=rows, output_dim=size)

    def logits_by_embedding(self, x: Tensor, name: str) -> Tensor:
        rows = self.weights[f"{name}.weight"].shape[0]
        return _sym.FullyConnected(
            x, self.weight(f"{name}.weight"), num_hidden=rows, flatten=False, no_bias=True
        )

    def concat(self, parts: Sequence[Tensor]) -> Tensor:
        return _sym.concat(*parts, dim=-1)

    def lstm(self, x: Tensor, name: str, bidirectional: bool = False) -> Tensor:
        size = self._hidden[name]
        state = _sym.zeros((2 if bidirectional else 1, self._samples, size))
        y = _sym.RNN(
            _sym.swapaxes(x, 0, 1), self.weight(f"{name}.packed"), state, state, state_size=size, num_layers=1,
            mode="lstm", bidirectional=bidirectional,
        )  # fmt: skip
        return _sym.swapaxes(y, 0, 1)

    def normed_attention(self, queries: Tensor, keys: Tensor, name: str) -> Tensor:
        q, k = self.linear(queries, f"{name}.query"), self.linear(keys, f"{name}.key")
        sums = _sym.broadcast_add(_sym.expand_dims(q, 2), _sym.expand_dims(k, 1))
        sums = _sym.broadcast_add(sums, _sym.reshape(self.weight(f"{name}.bias"), shape=(1, 1, 1, -1)))
        direction = self.weight(f"{name}.direction")
        scale = _sym.broadcast_div(
            _sym.reshape(self.weight(f"{name}.scale"), shape=(1,)),
            _sym.reshape(_sym.norm(direction), shape=(1,)),
        )
        direction = _sym.broadcast_mul(direction, scale)
        scores = _sym.dot(_sym.tanh(sums), direction)
        return _sym.batch_dot(_sym.softmax(scores, axis=-1), keys)

    def self_attention(self, qkv: Tensor, heads: int, causal: bool, p: float) -> Tensor:
        raise NotImplementedError("this module has no attention for MXNet")

    def shift(self, x: Tensor, name: str) -> Tensor:
        weight = self.weight(name)
        if len(self.weights[name].shape) == 2:
            weight = _sym.expand_dims(weight, 0)
        return _sym.broadcast_add(x, weight)

    def prepend(self, x: Tensor, name: str) -> Tensor:
        raise NotImplementedError("this module has no attention for MXNet")

    def first(self, x: Tensor) -> Tensor:
        return _sym.squeeze(_sym.slice_axis(x, axis=1, begin=0, end=1), axis=1)

    def cross_entropy(self, logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
        logs = _sym.log_softmax(logits, axis=-1)
        loss = -_sym.mean(_sym.pick(logs, labels, axis=-1))
        return (1 - smoothing) * loss - smoothing * _sym.mean(logs) if smoothing else loss

    def binary_cross_entropy(self, logits: Tensor, targets: Tensor) -> Tensor:
        logits = _sym.reshape(logits, shape=(-1,))
        return _sym.mean(_sym.Activation(logits, act_type="softrelu") - logits * targets)


def prepare(request: Request) -> Callable[[], float]:
    mx.random.seed(0)
    entry, network = ENTRIES[request.workload], NETWORKS[request.workload]
    arrays, inputs = read(request.start, request.samples)
    ops = Operations(arrays, request.dropout, len(inputs[0]))
    names = [f"batch {i}" for i in range(len(inputs))]
    loss = _sym.make_loss(network(ops, *map(_sym.Variable, names)))
    asked = {name: "null" if name in names else "write" for name in loss.list_arguments()}
    shapes = {name: array.shape for name, array in zip(names, inputs, strict=True)}
    executor = loss.simple_bind(mx.cpu(), grad_req=asked, **shapes)
    for values in (ops.weights, dict(zip(names, inputs, strict=True))):
        for name, array in values.items():
            executor.arg_dict[name][:] = array
    for name, array in ops.statistics.items():
        executor.aux_dict[name][:] = array
    if entry.optimizer == "sgd":
        optimizer = mx.optimizer.SGD(learning_rate=entry.rate, momentum=0.9)
    else:
        optimizer = mx.optimizer.Adam(learning_rate=entry.rate)
    update = mx.optimizer.get_updater(optimizer)
    weights = list(ops.weights)

    def step() -> float:
        executor.forward(is_train=True)
        executor.backward()
        slopes = [executor.grad_dict[name] for name in weights]
        update(list(range(len(weights))), slopes, [executor.arg_dict[name] for name in weights])
        value = float(executor.outputs[0].asscalar())
        mx.nd.waitall()
        return value

    return step
