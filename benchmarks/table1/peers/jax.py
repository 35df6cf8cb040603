"""Training with JAX: the whole step is one compiled function, whose buffers are donated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from ..catalogue import ENTRIES
from ..protocol import Request
from ..weights import read
from .networks import NETWORKS
from .operations import Tensor, kind

SWITCHES = ()

Tree = dict[str, Any]

# Images are (batch, height, width, channels), filters (height, width, in, out), matrices (in, out).
_LAYOUT = ("NHWC", "HWIO", "NHWC")


class Operations:
    """Operations of one call. `statistics` contains the running statistics after the call."""

    def __init__(self, weights: Tree, statistics: Tree, key: Tensor, dropout: bool) -> None:
        self.weights, self.statistics = weights, dict(statistics)
        self._key, self._drops = key, dropout

    def _biased(self, x: Tensor, name: str) -> Tensor:
        return x + self.weights[f"{name}.bias"] if f"{name}.bias" in self.weights else x

    def conv(self, x: Tensor, name: str, stride: int = 1, padding: int = 0, groups: int = 1) -> Tensor:
        y = lax.conv_general_dilated(
            x, self.weights[f"{name}.weight"], (stride, stride), [(padding, padding)] * 2,
            dimension_numbers=_LAYOUT, feature_group_count=groups,
        )  # fmt: skip
        return self._biased(y, name)

    def batch_norm(self, x: Tensor, name: str) -> Tensor:
        mean = x.mean((0, 1, 2))
        variance = jnp.square(x).mean((0, 1, 2)) - jnp.square(mean)
        count = x.size // x.shape[-1]
        before = self.statistics[name]
        now = lax.stop_gradient(jnp.stack((mean, variance * (count / (count - 1)))))
        self.statistics[name] = 0.9 * before + 0.1 * now
        scale = self.weights[f"{name}.weight"] * lax.rsqrt(variance + 1e-5)
        return x * scale + (self.weights[f"{name}.bias"] - mean * scale)

    def layer_norm(self, x: Tensor, name: str) -> Tensor:
        centred = x - x.mean(-1, keepdims=True)
        x = centred * lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def relu(self, x: Tensor) -> Tensor:
        return jax.nn.relu(x)

    def relu6(self, x: Tensor) -> Tensor:
        return jax.nn.relu6(x)

    def gelu(self, x: Tensor) -> Tensor:
        return jax.nn.gelu(x, approximate=False)

    def max_pool(self, x: Tensor, size: int, stride: int, padding: int = 0) -> Tensor:
        sides = ((0, 0), (padding, padding), (padding, padding), (0, 0))
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), sides)

    def average(self, x: Tensor) -> Tensor:
        return x.mean((1, 2))

    def flatten(self, x: Tensor) -> Tensor:
        return x.transpose(0, 3, 1, 2).reshape(len(x), -1)

    def rows(self, x: Tensor) -> Tensor:
        return x.reshape(len(x), -1, x.shape[-1])

    def linear(self, x: Tensor, name: str) -> Tensor:
        return self._biased(x @ self.weights[f"{name}.weight"], name)

    def dropout(self, x: Tensor, p: float) -> Tensor:
        if not self._drops or p == 0.0:
            return x
        self._key, key = jax.random.split(self._key)
        return jnp.where(jax.random.bernoulli(key, 1 - p, x.shape), x / (1 - p), 0.0)

    def embedding(self, indices: Tensor, name: str) -> Tensor:
        return self.weights[f"{name}.weight"][indices]

    def logits_by_embedding(self, x: Tensor, name: str) -> Tensor:
        return x @ self.weights[f"{name}.weight"].T

    def concat(self, parts: Sequence[Tensor]) -> Tensor:
        return jnp.concatenate(parts, -1)

    def lstm(self, x: Tensor, name: str, bidirectional: bool = False) -> Tensor:
        parts = [self._lstm(x, name, "_l0", False)]
        if bidirectional:
            parts.append(self._lstm(x, name, "_l0_reverse", True))
        return jnp.concatenate(parts, -1) if bidirectional else parts[0]

    def _lstm(self, x: Tensor, name: str, suffix: str, reverse: bool) -> Tensor:
        of_input, of_state = (self.weights[f"{name}.weight_{part}{suffix}"] for part in ("ih", "hh"))
        bias = self.weights[f"{name}.bias_ih{suffix}"] + self.weights[f"{name}.bias_hh{suffix}"]

        def cell(state: tuple[Tensor, Tensor], x: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
            h, c = state
            i, f, g, o = jnp.split(x + h @ of_state, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((len(x), of_state.shape[0]), x.dtype)
        inputs = (x @ of_input + bias).swapaxes(0, 1)
        return lax.scan(cell, (zeros, zeros), inputs, reverse=reverse)[1].swapaxes(0, 1)

    def normed_attention(self, queries: Tensor, keys: Tensor, name: str) -> Tensor:
        q, k = self.linear(queries, f"{name}.query"), self.linear(keys, f"{name}.key")
        sums = q[:, :, None] + k[:, None] + self.weights[f"{name}.bias"]
        direction = self.weights[f"{name}.direction"]
        direction *= self.weights[f"{name}.scale"] / jnp.linalg.norm(direction)
        return jax.nn.softmax(jnp.tanh(sums) @ direction, -1) @ keys

    def self_attention(self, qkv: Tensor, heads: int, causal: bool, p: float) -> Tensor:
        batch, length, size = qkv.shape
        depth = size // 3 // heads
        q, k, v = qkv.reshape(batch, length, 3, heads, depth).transpose(2, 0, 3, 1, 4)
        scores = q @ k.swapaxes(2, 3) * depth**-0.5
        if causal:
            scores = jnp.where(np.tri(length, dtype=bool), scores, -jnp.inf)
        y = self.dropout(jax.nn.softmax(scores, -1), p) @ v
        return y.swapaxes(1, 2).reshape(batch, length, heads * depth)

    def shift(self, x: Tensor, name: str) -> Tensor:
        return x + self.weights[name]

    def prepend(self, x: Tensor, name: str) -> Tensor:
        token = self.weights[name]
        return jnp.concatenate((jnp.broadcast_to(token, (len(x), 1, token.shape[2])), x), 1)

    def first(self, x: Tensor) -> Tensor:
        return x[:, 0]

    def cross_entropy(self, logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
        logs = jax.nn.log_softmax(logits, -1)
        loss = -jnp.take_along_axis(logs, labels[..., None], -1).mean()
        return (1 - smoothing) * loss - smoothing * logs.mean() if smoothing else loss

    def binary_cross_entropy(self, logits: Tensor, targets: Tensor) -> Tensor:
        logits = logits.reshape(-1)
        return (jax.nn.softplus(logits) - logits * targets).mean()


def prepare(request: Request) -> Callable[[], float]:
    entry, network = ENTRIES[request.workload], NETWORKS[request.workload]
    arrays, inputs = read(request.start, request.samples)
    weights: Tree = {}
    for name in list(arrays):
        array = arrays.pop(name)
        order = {"filter": (2, 3, 1, 0), "matrix": (1, 0), "other": None}[kind(name, array)]
        weights[name] = jnp.array(array if order is None else array.transpose(order))
    batch = tuple(jnp.array(array if array.ndim < 4 else array.transpose(0, 2, 3, 1)) for array in inputs)
    statistics = {
        name.removesuffix(".weight"): jnp.stack((jnp.zeros_like(array), jnp.ones_like(array)))
        for name, array in weights.items()
        if entry.images and array.ndim == 1 and name.endswith(".weight")
    }

    def loss(weights: Tree, statistics: Tree, key: Tensor, batch: tuple[Tensor, ...]) -> tuple[Tensor, Tree]:
        ops = Operations(weights, statistics, key, request.dropout)
        value = network(ops, *batch)
        return value, ops.statistics

    @partial(jax.jit, donate_argnums=0)
    def step(state: Tree, batch: tuple[Tensor, ...]) -> tuple[Tensor, Tree]:
        key, following = jax.random.split(state["key"])
        gradient = jax.value_and_grad(loss, has_aux=True)
        (value, statistics), slopes = gradient(state["weights"], state["statistics"], key, batch)
        state = {**state, "statistics": statistics, "key": following, "count": state["count"] + 1}
        return value, {**state, **_updated(entry.optimizer, entry.rate, state, slopes)}

    state: Tree = {
        "weights": weights,
        "moments": [{name: jnp.zeros_like(array) for name, array in weights.items()} for _ in "mv"],
        "statistics": statistics,
        "key": jax.random.key(0),
        "count": jnp.zeros((), jnp.float32),
    }
    if entry.optimizer == "sgd":
        del state["moments"][1]

    def one() -> float:
        nonlocal state
        value, state = step(state, batch)
        return float(value)

    return one


def _updated(optimizer: str, rate: float, state: Tree, slopes: Tree) -> Tree:
    """Return the weights and moments after a step of PyTorch's SGD with momentum 0.9, Adam or AdamW."""
    weights, moments = state["weights"], state["moments"]
    if optimizer == "sgd":
        velocity = {name: 0.9 * moments[0][name] + slope for name, slope in slopes.items()}
        return {
            "weights": {name: array - rate * velocity[name] for name, array in weights.items()},
            "moments": [velocity],
        }
    first = {name: 0.9 * moments[0][name] + 0.1 * slope for name, slope in slopes.items()}
    second = {name: 0.999 * moments[1][name] + 0.001 * slope * slope for name, slope in slopes.items()}
    scale = rate / (1 - 0.9 ** state["count"])
    correction = lax.rsqrt(1 - 0.999 ** state["count"])
    kept = 1 - rate * 0.01 if optimizer == "adamw" else 1.0
    return {
        "weights": {
            name: kept * array - scale * first[name] / (jnp.sqrt(second[name]) * correction + 1e-8)
            for name, array in weights.items()
        },
        "moments": [first, second],
    }
