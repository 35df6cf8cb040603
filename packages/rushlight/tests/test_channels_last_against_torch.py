"""The strides of results and gradients for channels-last inputs equal PyTorch's, if it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")


def last(t: Any, library: Any) -> Any:
    return t.to(memory_format=library.channels_last if t.dim() == 4 else library.channels_last_3d)


# Inputs: channels-last, with one channel or one position, which may have the strides of both formats, and views with gaps.
IMAGES: dict[str, Callable[[Any], Any]] = {
    "channels last": lambda t: last(t.randn(2, 4, 6, 6), t),
    "one sample": lambda t: last(t.randn(1, 4, 6, 6), t),
    "one row": lambda t: last(t.randn(2, 4, 1, 6), t),
    "one channel": lambda t: last(t.randn(2, 1, 6, 6), t),
    "one channel, row-major": lambda t: t.randn(2, 1, 6, 6),
    "one position": lambda t: last(t.randn(2, 4, 1, 1), t),
    "one position, row-major": lambda t: t.randn(2, 4, 1, 1),
    "some channels": lambda t: last(t.randn(2, 8, 6, 6), t)[:, :4],
    "some rows": lambda t: last(t.randn(2, 4, 8, 6), t)[:, :, 1:7],
    "some columns": lambda t: last(t.randn(2, 4, 6, 12), t)[..., ::2],
    "some samples": lambda t: last(t.randn(4, 4, 6, 6), t)[::2],
    "expanded": lambda t: last(t.randn(1, 4, 6, 6), t).expand(2, 4, 6, 6),
    "samples inside": lambda t: t.randn(4, 6, 6, 2).permute(3, 0, 1, 2),
    "row-major": lambda t: t.randn(2, 4, 6, 6),
}
VOLUMES: dict[str, Callable[[Any], Any]] = {
    "channels last": lambda t: last(t.randn(2, 4, 4, 6, 6), t),
    "one channel": lambda t: last(t.randn(2, 1, 4, 6, 6), t),
    "some channels": lambda t: last(t.randn(2, 8, 4, 6, 6), t)[:, :4],
    "row-major": lambda t: t.randn(2, 4, 4, 6, 6),
}


def window(x: Any) -> int:
    return min(2, x.shape[2])


# Each operator is given the functions of a library, the library and the input.
OF_IMAGES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "conv2d": lambda f, t, x: f.conv2d(x, t.ones(8, x.shape[1], 1, 1)),
    "conv2d, weight": lambda f, t, x: f.conv2d(x, last(t.ones(8, x.shape[1], 1, 1), t)),
    "conv_transpose2d": lambda f, t, x: f.conv_transpose2d(x, t.ones(x.shape[1], 8, 1, 1)),
    "max_pool2d": lambda f, t, x: f.max_pool2d(x, window(x)),
    "max_pool2d, indices": lambda f, t, x: f.max_pool2d(x, window(x), return_indices=True),
    "avg_pool2d": lambda f, t, x: f.avg_pool2d(x, window(x)),
    "adaptive_avg_pool2d": lambda f, t, x: f.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool2d": lambda f, t, x: f.adaptive_max_pool2d(x, 3, return_indices=True),
    "area": lambda f, t, x: f.interpolate(x, size=(3, 3), mode="area"),
    "batch_norm": lambda f, t, x: f.batch_norm(
        x, t.zeros(x.shape[1]), t.ones(x.shape[1]), t.ones(x.shape[1]), t.ones(x.shape[1]), training=True
    ),
    "batch_norm, evaluation": lambda f, t, x: f.batch_norm(x, t.zeros(x.shape[1]), t.ones(x.shape[1])),
    "native_batch_norm": lambda f, t, x: t.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5),
    "group_norm": lambda f, t, x: f.group_norm(x, 1),
    "dropout": lambda f, t, x: f.dropout(x),
    "dropout2d": lambda f, t, x: f.dropout2d(x),
    "alpha_dropout": lambda f, t, x: f.alpha_dropout(x, training=True),
    "cat, channels": lambda f, t, x: t.cat([x, x], 1),
    "cat, samples": lambda f, t, x: t.cat([x, x], 0),
    "cat, rows": lambda f, t, x: t.cat([x, x], 2),
    "cat, mixed": lambda f, t, x: t.cat([x, x.clone(memory_format=t.contiguous_format)], 1),
    "nearest": lambda f, t, x: f.interpolate(x, scale_factor=2),
    "bilinear": lambda f, t, x: f.interpolate(x, scale_factor=2, mode="bilinear"),
    "constant padding": lambda f, t, x: f.pad(x, (1, 1, 1, 1)),
    "padded channels": lambda f, t, x: f.pad(x, (1, 0, 0, 1, 1, 1)),
    "replicated padding": lambda f, t, x: f.pad(x, (1, 1, 1, 1), mode="replicate"),
    "reflected padding": lambda f, t, x: f.pad(
        x, (1, 1, 1, 1) if window(x) > 1 else (0,) * 4, mode="reflect"
    ),
    "pixel_unshuffle": lambda f, t, x: f.pixel_unshuffle(x, window(x)),
    "channel_shuffle": lambda f, t, x: f.channel_shuffle(x, 2) if x.shape[1] > 1 else x * 1,
    "relu": lambda f, t, x: f.relu(x),
    "hardswish": lambda f, t, x: f.hardswish(x),
    "flip": lambda f, t, x: x.flip(3),
}
OF_VOLUMES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "conv3d": lambda f, t, x: f.conv3d(x, t.ones(8, x.shape[1], 1, 1, 1)),
    "max_pool3d": lambda f, t, x: f.max_pool3d(x, 2),
    "max_pool3d, indices": lambda f, t, x: f.max_pool3d(x, 2, return_indices=True),
    "avg_pool3d": lambda f, t, x: f.avg_pool3d(x, 2),
    "adaptive_avg_pool3d": lambda f, t, x: f.adaptive_avg_pool3d(x, 2),
    "adaptive_max_pool3d": lambda f, t, x: f.adaptive_max_pool3d(x, 2, return_indices=True),
    "batch_norm": lambda f, t, x: f.batch_norm(x, None, None, training=True),
    "group_norm": lambda f, t, x: f.group_norm(x, 1),
    "dropout3d": lambda f, t, x: f.dropout3d(x),
    "cat": lambda f, t, x: t.cat([x, x], 1),
    "trilinear": lambda f, t, x: f.interpolate(x, scale_factor=2, mode="trilinear"),
    "constant padding": lambda f, t, x: f.pad(x, (1, 1, 1, 1, 1, 1)),
    "reflected padding": lambda f, t, x: f.pad(x, (1, 1, 1, 1, 1, 1), mode="reflect"),
    "replicated padding": lambda f, t, x: f.pad(x, (1, 1, 1, 1, 1, 1), mode="replicate"),
}
CASES = [
    pytest.param(op, make, id=f"{name}, {kind}, {dims}d")
    for dims, ops, inputs in ((4, OF_IMAGES, IMAGES), (5, OF_VOLUMES, VOLUMES))
    for name, op in ops.items()
    for kind, make in inputs.items()
]


def steps(t: Any) -> tuple[int, ...]:
    """Return the strides of the dimensions with more than one element."""
    return tuple(stride for stride, n in zip(t.stride(), t.shape, strict=True) if n > 1)


def strides(library: Any, op: Callable[[Any, Any, Any], Any], make: Callable[[Any], Any]) -> list[Any]:
    """Return the strides of the results, and of the input's gradient for a gradient of the first result in its format."""
    x = make(library).detach().requires_grad_()
    made = op(library.nn.functional, library, x)
    results = list(made) if isinstance(made, (tuple, list)) else [made]
    (gradient,) = library.autograd.grad(results[0], x, library.ones_like(results[0]))
    return [*map(steps, results), steps(gradient)]


@pytest.mark.parametrize(("op", "make"), CASES)
def test_strides(op: Callable[[Any, Any, Any], Any], make: Callable[[Any], Any]) -> None:
    assert strides(rushlight, op, make) == strides(torch, op, make)


# Results that keep the format here, and are row-major in PyTorch.
KEPT: dict[str, tuple[int, Callable[[Any, Any, Any], Any]]] = {
    "instance_norm": (4, lambda f, t, x: f.instance_norm(x)),
    "instance_norm, volumes": (5, lambda f, t, x: f.instance_norm(x)),
    "circular padding": (4, lambda f, t, x: f.pad(x, (1, 1, 1, 1), mode="circular")),
}
# Gradients that keep the format of the result's gradient here, and are row-major in PyTorch.
KEPT_GRADIENTS: dict[str, tuple[int, Callable[[Any, Any, Any], Any]]] = {
    "bicubic": (4, lambda f, t, x: f.interpolate(x, scale_factor=2, mode="bicubic")),
    "nearest, volumes": (5, lambda f, t, x: f.interpolate(x, scale_factor=2)),
    "global average": (4, lambda f, t, x: f.adaptive_avg_pool2d(x, 1)),
}


@pytest.mark.parametrize("name", [*KEPT, *KEPT_GRADIENTS])
def test_formats_that_are_kept_here_only(name: str) -> None:
    dims, op = (KEPT | KEPT_GRADIENTS)[name]
    make = (IMAGES if dims == 4 else VOLUMES)["channels last"]
    *ours, our_gradient = strides(rushlight, op, make)
    *theirs, their_gradient = strides(torch, op, make)
    assert our_gradient == steps(make(rushlight))
    assert their_gradient != our_gradient
    assert (ours == theirs) == (name in KEPT_GRADIENTS)
