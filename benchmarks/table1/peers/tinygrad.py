"""Training with tinygrad: the step is a `TinyJit`, which compiles its kernels and replays them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tinygrad import Device, Tensor, TinyJit
from tinygrad.nn.optim import SGD, Adam, AdamW

from ..catalogue import ENTRIES
from ..protocol import Request
from ..weights import Array, read
from .networks import NETWORKS

SWITCHES = ()


class Operations:
    """Images, filters and matrices have PyTorch's layouts."""

    def __init__(self, arrays: dict[str, Array], dropout: bool) -> None:
        self._drops = dropout
        self.weights = {name: Tensor(arrays.pop(name)).realize() for name in list(arrays)}
        for weight in self.weights.values():
            weight.requires_grad = True
        self.statistics: dict[str, tuple[Tensor, Tensor]] = {}

    def _biased(self, x: Tensor, name: str) -> Tensor:
        return x + self.weights[f"{name}.bias"] if f"{name}.bias" in self.weights else x

    def conv(self, x: Tensor, name: str, stride: int = 1, padding: int = 0, groups: int = 1) -> Tensor:
        bias = self.weights.get(f"{name}.bias")
        return x.conv2d(self.weights[f"{name}.weight"], bias, groups=groups, stride=stride, padding=padding)

    def batch_norm(self, x: Tensor, name: str) -> Tensor:
        mean = x.mean(axis=(0, 2, 3))
        variance = (x - mean.reshape(1, -1, 1, 1)).square().mean(axis=(0, 2, 3))
        if name not in self.statistics:
            self.statistics[name] = (
                Tensor.zeros(mean.shape[0]).contiguous().realize(),
                Tensor.ones(mean.shape[0]).contiguous().realize(),
            )
        count = x.numel() // x.shape[1]
        for running, now in zip(self.statistics[name], (mean, variance * (count / (count - 1))), strict=True):
            running.assign(0.9 * running + 0.1 * now.detach())
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return x.batchnorm(weight, bias, mean, (variance + 1e-5).rsqrt())

    def layer_norm(self, x: Tensor, name: str) -> Tensor:
        return x.layernorm(eps=1e-5) * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def relu(self, x: Tensor) -> Tensor:
        return x.relu()

    def relu6(self, x: Tensor) -> Tensor:
        return x.relu6()

    def gelu(self, x: Tensor) -> Tensor:
        return 0.5 * x * (1 + (x * 0.5**0.5).erf())

    def max_pool(self, x: Tensor, size: int, stride: int, padding: int = 0) -> Tensor:
        return x.max_pool2d((size, size), stride=stride, padding=padding)

    def average(self, x: Tensor) -> Tensor:
        return x.mean(axis=(2, 3))

    def flatten(self, x: Tensor) -> Tensor:
        return x.flatten(1)

    def rows(self, x: Tensor) -> Tensor:
        return x.flatten(2).transpose(1, 2)

    def linear(self, x: Tensor, name: str) -> Tensor:
        return self._biased(x @ self.weights[f"{name}.weight"].transpose(), name)

    def dropout(self, x: Tensor, p: float) -> Tensor:
        return x.dropout(p) if self._drops and p > 0.0 else x

    def embedding(self, indices: Tensor, name: str) -> Tensor:
        return self.weights[f"{name}.weight"][indices]

    def logits_by_embedding(self, x: Tensor, name: str) -> Tensor:
        return x @ self.weights[f"{name}.weight"].transpose()

    def concat(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0].cat(*parts[1:], dim=-1)

    def lstm(self, x: Tensor, name: str, bidirectional: bool = False) -> Tensor:
        raise NotImplementedError("this benchmark has no LSTM for tinygrad")

    def normed_attention(self, queries: Tensor, keys: Tensor, name: str) -> Tensor:
        raise NotImplementedError(
            "this benchmark has no LSTM for tinygrad, and this attention is used only with LSTMs"
        )

    def self_attention(self, qkv: Tensor, heads: int, causal: bool, p: float) -> Tensor:
        batch, length, size = qkv.shape
        q, k, v = qkv.reshape(batch, length, 3, heads, size // 3 // heads).permute(2, 0, 3, 1, 4)
        y = q.scaled_dot_product_attention(k, v, is_causal=causal, dropout_p=p if self._drops else 0.0)
        return y.transpose(1, 2).reshape(batch, length, size // 3)

    def shift(self, x: Tensor, name: str) -> Tensor:
        return x + self.weights[name]

    def prepend(self, x: Tensor, name: str) -> Tensor:
        token = self.weights[name]
        return token.expand(x.shape[0], 1, token.shape[2]).cat(x, dim=1)

    def first(self, x: Tensor) -> Tensor:
        return x[:, 0]

    def cross_entropy(self, logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
        logits = logits.reshape(-1, logits.shape[-1])
        return logits.sparse_categorical_crossentropy(labels.flatten(), label_smoothing=smoothing)

    def binary_cross_entropy(self, logits: Tensor, targets: Tensor) -> Tensor:
        return logits.flatten().binary_crossentropy_logits(targets)


def prepare(request: Request) -> Callable[[], float]:
    Device.DEFAULT = "CPU"
    Tensor.manual_seed(0)
    entry, network = ENTRIES[request.workload], NETWORKS[request.workload]
    arrays, inputs = read(request.start, request.samples)
    ops = Operations(arrays, request.dropout)
    batch = tuple(
        Tensor(array if array.dtype.kind == "f" else array.astype("int32")).realize() for array in inputs
    )
    weights = list(ops.weights.values())
    if entry.optimizer == "sgd":
        optimizer: Any = SGD(weights, lr=entry.rate, momentum=0.9)
    else:
        optimizer = (AdamW if entry.optimizer == "adamw" else Adam)(weights, lr=entry.rate)

    @TinyJit
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = network(ops, *batch)
        loss.backward()
        statistics = [tensor for pair in ops.statistics.values() for tensor in pair]
        return loss.realize(*optimizer.schedule_step(), *statistics)

    def one() -> float:
        with Tensor.train():
            return float(step().item())

    return one
