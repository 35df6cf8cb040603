"""Oracles of losses, attention, recurrent layers and resampling, written from the definitions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


# --- losses ---


def reduced(losses: Array, reduction: int) -> Any:
    """Reduce losses; `reduction` is 0 for none, 1 for the mean, 2 for the sum."""
    return losses if reduction == 0 else np.mean(losses) if reduction == 1 else np.sum(losses)


def _log_softmax(x: Array, axis: int) -> Array:
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def nll_loss(x: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> Any:
    """Return -weight[target] * x[target]. The mean is the sum of these losses divided by the sum of their weights."""
    classes = x[None] if x.ndim == 1 else x
    targets = target.reshape(1) if x.ndim == 1 else target
    losses, used = np.zeros(targets.shape), np.zeros(targets.shape)
    for position in np.ndindex(targets.shape):
        c = int(targets[position])
        if c != ignore_index:
            used[position] = 1 if weight is None else weight[c]
            losses[position] = -used[position] * classes[(position[0], c, *position[1:])]
    if reduction == 1:
        return losses.sum() / used.sum()
    return reduced(losses if x.ndim > 1 else losses[0], reduction)


def cross_entropy(
    x: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int, smoothing: float
) -> Any:
    """Return the cross entropy: the mean of -log(softmax(x)) under the distribution of the target."""
    axis = 0 if x.ndim == 1 else 1
    classes = x.shape[axis]
    scores = _log_softmax(x, axis)
    shape = [classes if d == axis else 1 for d in range(x.ndim)]
    weights = np.ones(shape) if weight is None else weight.reshape(shape)
    if target.shape == x.shape and target.dtype.kind == "f":
        wanted = target * (1 - smoothing) + smoothing / classes
        losses = -np.sum(wanted * weights * scores, axis=axis)
        return losses.sum() / max(losses.size, 1) if reduction == 1 else reduced(losses, reduction)
    target = target.reshape(()) if x.ndim == 1 else target  # a single target may have one dimension
    kept = target != ignore_index
    chosen = np.expand_dims(np.where(kept, target, 0), axis)
    own = np.take_along_axis(np.broadcast_to(weights, x.shape), chosen, axis).squeeze(axis) * kept
    hard = -np.take_along_axis(scores, chosen, axis).squeeze(axis) * own
    soft = -np.sum(weights * scores, axis=axis) / classes * kept
    losses = (1 - smoothing) * hard + smoothing * soft
    return losses.sum() / own.sum() if reduction == 1 else reduced(losses, reduction)


def bce(x: Array, target: Array, weight: Array | None, reduction: int) -> Any:
    """Return the binary cross entropy of probabilities, whose logarithms are clamped to at least -100."""
    losses = -(target * np.maximum(np.log(x), -100) + (1 - target) * np.maximum(np.log1p(-x), -100))
    return reduced(losses if weight is None else losses * weight, reduction)


def bce_with_logits(
    x: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: int
) -> Any:
    """Return the binary cross entropy of sigmoid(x), with a weight for positive targets."""
    positive = target if pos_weight is None else target * pos_weight
    losses = positive * np.logaddexp(0, -x) + (1 - target) * np.logaddexp(0, x)
    return reduced(losses if weight is None else losses * weight, reduction)


def kl_div(x: Array, target: Array, reduction: int, log_target: bool) -> Any:
    if log_target:
        return reduced(np.exp(target) * (target - x), reduction)
    logs = np.log(np.where(target > 0, target, 1))
    return reduced(np.where(target > 0, target * logs, 0) - target * x, reduction)


def cosine_embedding(x1: Array, x2: Array, target: Array, margin: float, reduction: int) -> Any:
    cosine = np.sum(x1 * x2, -1) / np.sqrt((np.sum(x1 * x1, -1) + 1e-12) * (np.sum(x2 * x2, -1) + 1e-12))
    return reduced(np.where(target == 1, 1 - cosine, np.maximum(cosine - margin, 0)), reduction)


def triplet_margin(
    anchor: Array,
    positive: Array,
    negative: Array,
    margin: float,
    p: float,
    eps: float,
    swap: bool,
    reduction: int,
) -> Any:
    def distance(a: Array, b: Array) -> Any:
        return np.sum(np.abs(a - b + eps) ** p, -1) ** (1 / p)

    near, far = distance(anchor, positive), distance(anchor, negative)
    far = np.minimum(far, distance(positive, negative)) if swap else far
    return reduced(np.maximum(margin + near - far, 0), reduction)


def poisson_nll(x: Array, target: Array, log_input: bool, full: bool, eps: float, reduction: int) -> Any:
    losses = np.exp(x) - target * x if log_input else x - target * np.log(x + eps)
    if full:
        t = np.where(target > 1, target, 1)
        losses = losses + np.where(target > 1, t * np.log(t) - t + 0.5 * np.log(2 * np.pi * t), 0)
    return reduced(losses, reduction)


def multi_margin(x: Array, target: Array, p: int, margin: float, weight: Array | None, reduction: int) -> Any:
    rows, targets = np.atleast_2d(x), np.atleast_1d(target)
    losses = np.zeros(len(rows))
    for i, (row, c) in enumerate(zip(rows, targets, strict=True)):
        parts = [max(0.0, margin - row[c] + v) ** p for k, v in enumerate(row) if k != c]
        losses[i] = sum(parts) / len(row) * (1 if weight is None else weight[c])
    return reduced(losses if x.ndim > 1 else losses[0], reduction)


def multilabel_margin(x: Array, target: Array, reduction: int) -> Any:
    rows, targets = np.atleast_2d(x), np.atleast_2d(target)
    losses = np.zeros(len(rows))
    for i, (row, labels) in enumerate(zip(rows, targets, strict=True)):
        own = list(itertools.takewhile(lambda c: c >= 0, labels.tolist()))
        others = [v for k, v in enumerate(row) if k not in own]
        losses[i] = sum(max(0.0, 1 - row[c] + v) for c in own for v in others) / len(row)
    return reduced(losses if x.ndim > 1 else losses[0], reduction)


def ctc_loss(
    log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int, reduction: int,
    zero_infinity: bool,
) -> Any:  # fmt: skip
    """Return the CTC loss, computed from the sum of the probabilities of all alignments of the labels."""
    single = log_probs.ndim == 2
    scores = log_probs[:, None] if single else log_probs
    lengths, counts = np.atleast_1d(input_lengths), np.atleast_1d(target_lengths)
    ends = np.cumsum(counts)
    losses = np.zeros(len(counts))
    for i, (time, count, end) in enumerate(zip(lengths, counts, ends, strict=True)):
        joined = targets.ndim == 1
        labels = (targets[end - count : end] if joined else targets[i, :count]).tolist()
        total = -np.inf
        for path in itertools.product(range(scores.shape[2]), repeat=int(time)):
            merged = [c for c, _ in itertools.groupby(path)]
            if [c for c in merged if c != blank] == labels:
                total = np.logaddexp(total, sum(scores[t, i, c] for t, c in enumerate(path)))
        losses[i] = 0 if zero_infinity and np.isinf(total) else -total
    if reduction == 1:
        return np.mean(losses / np.maximum(counts, 1))
    return reduced(losses[0] if single else losses, reduction)


# --- attention ---


def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    is_causal: bool,
    scale: float | None,
    gqa: bool,
) -> Array:
    """Return softmax(scale * query @ key^T + mask) @ value."""
    if gqa:
        shared = query.shape[-3] // key.shape[-3]
        key, value = np.repeat(key, shared, -3), np.repeat(value, shared, -3)
    scores = query @ np.swapaxes(key, -1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    top = np.max(scores, -1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0) @ value


def embedding_bag(
    weight: Array, indices: Array, bags: Array, count: int, divisor: float, padding_idx: int
) -> Array:
    sums = np.zeros((count, weight.shape[1]))
    for row, bag in zip(indices, bags, strict=True):
        if row != padding_idx:
            sums[bag] += weight[row]
    return sums / divisor


# --- recurrent layers ---


def _sigmoid(x: Array) -> Any:
    return 1 / (1 + np.exp(-x))


Cell = Callable[..., tuple[Array, ...]]


def lstm_cell(
    x: Array, states: Any, w_ih: Array, w_hh: Array, b_ih: Any = None, b_hh: Any = None
) -> tuple[Array, ...]:
    hidden, memory = states
    gates = x @ w_ih.T + hidden @ w_hh.T + (0 if b_ih is None else b_ih) + (0 if b_hh is None else b_hh)
    i, f, g, o = np.split(gates, 4, -1)
    memory = _sigmoid(f) * memory + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(memory), memory


def gru_cell(
    x: Array, states: Any, w_ih: Array, w_hh: Array, b_ih: Any = None, b_hh: Any = None
) -> tuple[Array, ...]:
    (hidden,) = states
    r, z, n = np.split(x @ w_ih.T + (0 if b_ih is None else b_ih), 3, -1)
    s, y, m = np.split(hidden @ w_hh.T + (0 if b_hh is None else b_hh), 3, -1)
    keep = _sigmoid(z + y)
    return ((1 - keep) * np.tanh(n + _sigmoid(r + s) * m) + keep * hidden,)


def _elman(function: Callable[[Array], Array]) -> Cell:
    def cell(
        x: Array, states: Any, w_ih: Array, w_hh: Array, b_ih: Any = None, b_hh: Any = None
    ) -> tuple[Array, ...]:
        sums = x @ w_ih.T + states[0] @ w_hh.T
        return (function(sums + (0 if b_ih is None else b_ih) + (0 if b_hh is None else b_hh)),)

    return cell


_CELLS: dict[str, Cell] = {
    "lstm": lstm_cell,
    "gru": gru_cell,
    "rnn_tanh": _elman(np.tanh),
    "rnn_relu": _elman(lambda x: np.maximum(x, 0)),
}


def recurrent(
    name: str, x: Array, hx: Any, params: list[Array], has_biases: bool, layers: int, bidirectional: bool,
    batch_first: bool = False, batch_sizes: Array | None = None,
) -> tuple[Array, ...]:  # fmt: skip
    """Run a recurrent network without dropout; return the states of the last layer and the final states of all layers.

    `batch_sizes` contains, for each time step, the number of packed sequences that have an element at this step.
    """
    states = list(hx) if isinstance(hx, (list, tuple)) else [hx]
    if batch_sizes is not None:
        ends = np.cumsum(batch_sizes)
        steps = [x[end - n : end] for n, end in zip(batch_sizes, ends, strict=True)]
    else:
        steps = list(np.moveaxis(x, 1, 0) if batch_first else x)
    directions = 2 if bidirectional else 1
    per = len(params) // (layers * directions)
    last: list[list[Array]] = [[] for _ in states]
    for layer in range(layers):
        found = []
        for d in range(directions):
            k = layer * directions + d
            weights = params[k * per : (k + 1) * per]
            inner, project = weights[: 4 if has_biases else 2], weights[4 if has_biases else 2 :]
            now = [s[k].copy() for s in states]
            out: list[Any] = [None] * len(steps)
            for t in range(len(steps))[:: -1 if d else 1]:
                n = len(steps[t])
                made = list(_CELLS[name](steps[t], [s[:n] for s in now], *inner))
                if project:
                    made[0] = made[0] @ project[0].T
                for s, m in zip(now, made, strict=True):
                    s[:n] = m
                out[t] = made[0]
            found.append(out)
            for kept, s in zip(last, now, strict=True):
                kept.append(s)
        steps = [np.concatenate(step, -1) for step in zip(*found, strict=True)]
    whole = np.concatenate(steps) if batch_sizes is not None else np.stack(steps, 1 if batch_first else 0)
    return (whole, *(np.stack(kept) for kept in last))


# --- resampling ---


def _cubic(distance: float, a: float) -> float:
    d = abs(distance)
    if d < 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else 0.0


def resample(
    x: Array, dim: int, size: int, mode: int, align_corners: bool, scale: float | None, antialias: bool
) -> Array:
    """Return resampled values as weighted sums of neighbors; modes are 0 nearest, 1 nearest-exact, 2 linear, 3 cubic."""
    n = x.shape[dim]
    step = (n - 1) / (size - 1) if align_corners and size > 1 else 1 / scale if scale else n / size
    weights = np.zeros((size, n))
    for i in range(size):
        if mode < 2:
            weights[i, min(int(np.floor((i + 0.5 * mode) * step)), n - 1)] = 1
            continue
        at = i * step if align_corners else (i + 0.5) * step - 0.5
        if antialias:
            width = max(step, 1.0)
            kernel = [
                max(0.0, 1 - abs((k - at) / width)) if mode == 2 else _cubic((k - at) / width, -0.5)
                for k in range(n)
            ]
            weights[i] = np.array(kernel) / sum(kernel)
            continue
        at = max(at, 0.0) if mode == 2 else at
        first = int(np.floor(at))
        for k in range(first - 1, first + 3):
            value = max(0.0, 1 - abs(k - at)) if mode == 2 else _cubic(k - at, -0.75)
            weights[i, min(max(k, 0), n - 1)] += value
    return np.moveaxis(np.tensordot(weights, np.moveaxis(x, dim, 0), 1), 0, dim)


def grid_sample(x: Array, grid: Array, mode: int, padding: int, align_corners: bool) -> Array:
    """Sample the input at the positions of a grid.

    The modes are 0 linear, 1 nearest and 2 cubic. The padding modes are 0 zeros, 1 edge and 2 reflection.
    """
    sizes = x.shape[2:]

    def reflect(at: float, n: int) -> float:
        low, span = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
        if span == 0:
            return 0.0
        distance = abs(at - low) % (2 * span)
        return low + (distance if distance <= span else 2 * span - distance)

    def inside(at: float, n: int) -> float:
        if padding == 0:
            return at
        return min(max(reflect(at, n) if padding == 2 else at, 0.0), n - 1.0)

    def pixel(plane: Array, taps: tuple[int, ...]) -> Any:
        if padding == 0 and any(t < 0 or t >= n for t, n in zip(taps, sizes, strict=True)):
            return 0.0
        return plane[tuple(round(inside(float(t), n)) for t, n in zip(taps, sizes, strict=True))]

    out = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:-1]))
    for n, *position in np.ndindex(x.shape[0], *grid.shape[1:-1]):
        spots = [
            (c + 1) / 2 * (m - 1) if align_corners else ((c + 1) * m - 1) / 2
            for c, m in zip(grid[(n, *position)][::-1], sizes, strict=True)
        ]
        spots = spots if mode == 2 else [inside(at, m) for at, m in zip(spots, sizes, strict=True)]
        reach = {0: (0, 2), 1: (0, 1), 2: (-1, 3)}[mode]
        lines = []
        for at in spots:
            first = round(at) if mode == 1 else int(np.floor(at))
            taps = [first + k for k in range(*reach)]
            kernel = {0: lambda d: 1 - abs(d), 1: lambda d: 1.0, 2: lambda d: _cubic(d, -0.75)}[mode]
            lines.append([(t, kernel(at - t)) for t in taps])
        for c in range(x.shape[1]):
            out[(n, c, *position)] = sum(
                pixel(x[n, c], tuple(t for t, _ in taps)) * np.prod([w for _, w in taps])
                for taps in itertools.product(*lines)
            )
    return out
