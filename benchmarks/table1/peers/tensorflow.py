"""Training with TensorFlow: the step is a `tf.function`, and the updates are TensorFlow's fused operators.

"xla" compiles the function with XLA.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ..catalogue import ENTRIES
from ..protocol import Request
from ..weights import Array, read
from .networks import NETWORKS
from .operations import Tensor, kind

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf

SWITCHES = ("xla",)


class Operations:
    """Images are (batch, height, width, channels), filters (height, width, in, out), matrices (in, out)."""

    def __init__(self, arrays: dict[str, Array], dropout: bool) -> None:
        self._drops = dropout
        self.weights: dict[str, Any] = {}
        for name in list(arrays):
            array = arrays.pop(name)
            what = kind(name, array)
            if what == "filter":
                # Depthwise filters, which have the shape (height, width, channels, 1).
                depthwise = array.shape[1] == 1 and array.shape[0] > 1
                array = array.transpose((2, 3, 0, 1) if depthwise else (2, 3, 1, 0))
            elif what == "matrix":
                array = array.T
            self.weights[name] = tf.Variable(array, name=name.replace(".", "_"))
        self._statistics: dict[str, tuple[Any, Any]] = {}

    def _biased(self, x: Tensor, name: str) -> Tensor:
        return tf.nn.bias_add(x, self.weights[f"{name}.bias"]) if f"{name}.bias" in self.weights else x

    def conv(self, x: Tensor, name: str, stride: int = 1, padding: int = 0, groups: int = 1) -> Tensor:
        weight = self.weights[f"{name}.weight"]
        same = stride == 1 and 2 * padding == weight.shape[0] - 1
        if padding and not same:  # SAME would put odd padding at the far end
            x = tf.pad(x, [[0, 0], [padding, padding], [padding, padding], [0, 0]])
        how, steps = "SAME" if same else "VALID", [1, stride, stride, 1]
        function = tf.nn.depthwise_conv2d if groups > 1 else tf.nn.conv2d
        return self._biased(function(x, weight, steps, how), name)

    def batch_norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        y, mean, variance = tf.compat.v1.nn.fused_batch_norm(x, weight, bias, epsilon=1e-5, is_training=True)
        if name not in self._statistics:
            with tf.init_scope():
                start = (tf.zeros(weight.shape), tf.ones(weight.shape))
                self._statistics[name] = tuple(tf.Variable(value, trainable=False) for value in start)
        for running, now in zip(self._statistics[name], (mean, variance), strict=True):
            running.assign_sub(0.1 * (running - now))
        return y

    def layer_norm(self, x: Tensor, name: str) -> Tensor:
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return tf.nn.batch_normalization(x, mean, variance, bias, weight, 1e-5)

    def relu(self, x: Tensor) -> Tensor:
        return tf.nn.relu(x)

    def relu6(self, x: Tensor) -> Tensor:
        return tf.nn.relu6(x)

    def gelu(self, x: Tensor) -> Tensor:
        return tf.nn.gelu(x)

    def max_pool(self, x: Tensor, size: int, stride: int, padding: int = 0) -> Tensor:
        if padding:
            x = tf.pad(x, [[0, 0], [padding, padding], [padding, padding], [0, 0]])
        return tf.nn.max_pool2d(x, size, stride, "VALID")

    def average(self, x: Tensor) -> Tensor:
        return tf.reduce_mean(x, [1, 2])

    def flatten(self, x: Tensor) -> Tensor:
        return tf.reshape(tf.transpose(x, [0, 3, 1, 2]), [x.shape[0], -1])

    def rows(self, x: Tensor) -> Tensor:
        return tf.reshape(x, [x.shape[0], -1, x.shape[3]])

    def linear(self, x: Tensor, name: str) -> Tensor:
        weight = self.weights[f"{name}.weight"]
        y = tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), weight)
        return tf.reshape(self._biased(y, name), [*x.shape[:-1], weight.shape[1]])

    def dropout(self, x: Tensor, p: float) -> Tensor:
        return tf.nn.dropout(x, p) if self._drops and p > 0.0 else x

    def embedding(self, indices: Tensor, name: str) -> Tensor:
        return tf.gather(self.weights[f"{name}.weight"], indices)

    def logits_by_embedding(self, x: Tensor, name: str) -> Tensor:
        weight = self.weights[f"{name}.weight"]
        y = tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), weight, transpose_b=True)
        return tf.reshape(y, [*x.shape[:-1], weight.shape[0]])

    def concat(self, parts: Sequence[Tensor]) -> Tensor:
        return tf.concat(parts, -1)

    def lstm(self, x: Tensor, name: str, bidirectional: bool = False) -> Tensor:
        ahead = self._lstm(x, name, "_l0")
        if not bidirectional:
            return ahead
        back = self._lstm(tf.reverse(x, [1]), name, "_l0_reverse")
        return tf.concat((ahead, tf.reverse(back, [1])), -1)

    def _lstm(self, x: Tensor, name: str, suffix: str) -> Tensor:
        of_state = self.weights[f"{name}.weight_hh{suffix}"]
        bias = self.weights[f"{name}.bias_ih{suffix}"] + self.weights[f"{name}.bias_hh{suffix}"]
        batch, length, size = x.shape
        inputs = tf.matmul(tf.reshape(x, [-1, size]), self.weights[f"{name}.weight_ih{suffix}"])
        inputs = tf.unstack(tf.reshape(tf.nn.bias_add(inputs, bias), [batch, length, -1]), axis=1)
        h = c = tf.zeros([batch, of_state.shape[0]])
        outputs = []
        for step in inputs:
            i, f, g, o = tf.split(step + tf.matmul(h, of_state), 4, axis=-1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
            outputs.append(h)
        return tf.stack(outputs, axis=1)

    def normed_attention(self, queries: Tensor, keys: Tensor, name: str) -> Tensor:
        q, k = self.linear(queries, f"{name}.query"), self.linear(keys, f"{name}.key")
        sums = q[:, :, None] + k[:, None] + self.weights[f"{name}.bias"]
        direction = self.weights[f"{name}.direction"]
        direction = direction * (self.weights[f"{name}.scale"] / tf.norm(direction))
        scores = tf.linalg.matvec(tf.reshape(tf.tanh(sums), [-1, sums.shape[-1]]), direction)
        return tf.matmul(tf.nn.softmax(tf.reshape(scores, sums.shape[:-1])), keys)

    def self_attention(self, qkv: Tensor, heads: int, causal: bool, p: float) -> Tensor:
        batch, length, size = qkv.shape
        depth = size // 3 // heads
        qkv = tf.transpose(tf.reshape(qkv, [batch, length, 3, heads, depth]), [2, 0, 3, 1, 4])
        q, k, v = tf.unstack(qkv)
        scores = tf.matmul(q * depth**-0.5, k, transpose_b=True)
        if causal:
            scores += (1 - tf.linalg.band_part(tf.ones([length, length]), -1, 0)) * -1e9
        y = tf.matmul(self.dropout(tf.nn.softmax(scores), p), v)
        return tf.reshape(tf.transpose(y, [0, 2, 1, 3]), [batch, length, heads * depth])

    def shift(self, x: Tensor, name: str) -> Tensor:
        return x + self.weights[name]

    def prepend(self, x: Tensor, name: str) -> Tensor:
        return tf.concat((tf.repeat(self.weights[name], x.shape[0], axis=0), x), 1)

    def first(self, x: Tensor) -> Tensor:
        return x[:, 0]

    def cross_entropy(self, logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        if not smoothing:
            return loss
        return (1 - smoothing) * loss - smoothing * tf.reduce_mean(tf.nn.log_softmax(logits))

    def binary_cross_entropy(self, logits: Tensor, targets: Tensor) -> Tensor:
        logits = tf.reshape(logits, [-1])
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(targets, logits))


def prepare(request: Request) -> Callable[[], float]:
    tf.config.threading.set_intra_op_parallelism_threads(request.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.random.set_seed(0)
    entry, network = ENTRIES[request.workload], NETWORKS[request.workload]
    arrays, inputs = read(request.start, request.samples)
    ops = Operations(arrays, request.dropout)
    batch = tuple(tf.constant(array if array.ndim < 4 else array.transpose(0, 2, 3, 1)) for array in inputs)
    variables = list(ops.weights.values())
    update = _Update(entry.optimizer, entry.rate, variables)

    @tf.function(jit_compile="xla" in request.switches())
    def step(*batch: Tensor) -> Tensor:
        with tf.GradientTape() as tape:
            loss = network(ops, *batch)
        update(tape.gradient(loss, variables))
        return loss

    return lambda: float(step(*batch))


class _Update:
    """PyTorch's SGD with momentum 0.9, Adam or AdamW, by TensorFlow's operators that update a whole variable."""

    def __init__(self, optimizer: str, rate: float, variables: list[Any]) -> None:
        self._optimizer, self._rate, self._variables = optimizer, rate, variables
        count = 1 if optimizer == "sgd" else 2
        self._moments = [[tf.Variable(tf.zeros(v.shape)) for v in variables] for _ in range(count)]
        self._powers = [tf.Variable(0.9), tf.Variable(0.999)]

    def __call__(self, slopes: list[Tensor]) -> None:
        for i, (variable, given) in enumerate(zip(self._variables, slopes, strict=True)):
            moments = [moment[i].handle for moment in self._moments]
            slope = tf.convert_to_tensor(given)  # gradients are dense, also those of embeddings
            if self._optimizer == "sgd":
                tf.raw_ops.ResourceApplyMomentum(
                    var=variable.handle, accum=moments[0], lr=self._rate, grad=slope, momentum=0.9
                )
                continue
            if self._optimizer == "adamw":
                variable.assign(variable * (1 - self._rate * 0.01))
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle, m=moments[0], v=moments[1], grad=slope, lr=self._rate, beta1=0.9,
                beta2=0.999, epsilon=1e-8, beta1_power=self._powers[0], beta2_power=self._powers[1],
            )  # fmt: skip
        for power, beta in zip(self._powers, (0.9, 0.999), strict=True):
            power.assign(power * beta)
