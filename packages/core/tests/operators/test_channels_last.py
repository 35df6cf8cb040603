"""Law: results of operators whose entry has the key `layout` have this layout, on the CPU and on the meta device, and the
values of the results for row-major tensors.

The kernels of channels-last tensors process whole vectors of channels, so their tests use numbers of channels around a
vector's length. The values of all samples in this layout are tested by test_laws_layout.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core.codegen.layouts import LayoutError, check_layout
from rushlight_core.codegen.model import Op
from rushlight_testing.operators import all_samples, call, flat, operators
from rushlight_testing.samples import arguments_of
from rushlight_testing.variants import LAYOUTS, with_layout

OPS = [op for op in operators() if op.layout]
FORMATS = {4: core.channels_last, 5: core.channels_last_3d}
CHANNELS = (1, 3, 8, 16, 24, 65, 130)


def in_format(t: core.Tensor) -> core.Tensor:
    return t.contiguous(memory_format=FORMATS[t.dim()])


def random(*shape: int, dtype: core.dtype = core.float32) -> core.Tensor:
    return core.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape)).to(dtype)


# --- the entries ---


def layout_of(t: core.Tensor) -> str:
    """Return "last" for a channels-last tensor, "row-major", or "both"."""
    last = t.dim() in FORMATS and t.is_contiguous(memory_format=FORMATS[t.dim()])
    return ("both" if last else "row-major") if t.is_contiguous() else "last" if last else "strided"


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS])
def test_results_have_the_layout_of_the_entry(op: Op) -> None:
    seen = False
    for sample in all_samples(op):
        placed, _ = with_layout(sample, LAYOUTS["channels last"])
        there = with_layout(
            placed, lambda t: core.empty_strided(t.shape, t.stride(), device="meta", dtype=t.dtype)
        )
        core.manual_seed(0)
        results = flat(call(op, placed))
        for made, shapes in zip(results, flat(call(op, there[0])), strict=True):
            if isinstance(made, core.Tensor):
                assert made.stride() == shapes.stride(), f"{op.name}({sample.text}), meta device"
        given = arguments_of(op, placed)
        for number, made in enumerate(results):
            text = op.layout[0] if len(op.layout) == 1 else (*op.layout, *[""] * 9)[number]
            for name in re.match(r"(?:strides of )?([\w ]*?)(?: of \d.*| unless.*)?$", text)[1].split(" or "):
                like = given.get(name)
                if not isinstance(made, core.Tensor) or like is None or like.dim() != made.dim():
                    continue
                if (match := re.search(r"of (\d) dimensions", text)) and like.dim() != int(match[1]):
                    continue
                if layout_of(like) == "last":
                    seen = True
                    assert layout_of(made) in ("last", "both"), f"{op.name}({sample.text}): {made.stride()}"
    assert seen, f"{op.name}: no sample has four or five dimensions"


def test_entries_are_checked() -> None:
    op = next(op for op in OPS if op.name == "max_pool2d")
    for layout, message in (("inputs", "names 'inputs'"), ("input in 4d", "none of the forms that")):
        changed = Op(**{**op.__dict__, "layout": (layout,)})
        with pytest.raises(LayoutError, match=message):
            check_layout(changed)
    changed = Op(**{**op.__dict__, "kind": "composite"})
    with pytest.raises(LayoutError, match="only allowed for operators of kind custom"):
        check_layout(changed)


# --- the kernels ---

POOLS: dict[str, Callable[[core.Tensor], Any]] = {
    "max": lambda x: core.max_pool2d(x, 3, 2, 1),
    "max, dilated": lambda x: core.max_pool2d_with_indices(x, (2, 3), 1, 1, (2, 1)),
    "max, ceil_mode": lambda x: core.max_pool2d_with_indices(x, 3, 2, 1, 1, True),
    "max, global": lambda x: core.max_pool2d_with_indices(x, (9, 11)),
    "average": lambda x: core.avg_pool2d(x, 3, 2, 1),
    "average without padding": lambda x: core.avg_pool2d(x, 3, 2, 1, True, False),
    "average, divisor": lambda x: core.avg_pool2d(x, 2, divisor_override=3),
    "average, global": lambda x: core.avg_pool2d(x, (9, 11)),
    "adaptive average": lambda x: core.adaptive_avg_pool2d(x, (4, 5)),
    "adaptive average, global": lambda x: core.adaptive_avg_pool2d(x, 1),
    "adaptive max": lambda x: core.adaptive_max_pool2d(x, (4, 5)),
}


def same(found: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    for a, b in zip(flat(found), flat(wanted), strict=True):
        assert a.dtype == b.dtype
        if a.dtype == core.int64:
            assert core.equal(a, b)
        else:
            assert core.allclose(a.to(core.float64), b.to(core.float64), tolerance, tolerance, equal_nan=True)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
@pytest.mark.parametrize("dtype", [core.float32, core.float64, core.bfloat16], ids=str)
def test_pools(pool: Callable[[core.Tensor], Any], channels: int, dtype: core.dtype) -> None:
    x = random(2, channels, 9, 11, dtype=dtype)
    same(pool(in_format(x)), pool(x), 1e-2 if dtype is core.bfloat16 else 1e-5)


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_pools_of_special_values(pool: Callable[[core.Tensor], Any]) -> None:
    x = random(1, 20, 9, 11)
    x[:, ::3, 2:5, 1:4] = float("nan")
    x[:, 1::3] = float("-inf")
    x[:, 2::3] = 0.5
    same(pool(in_format(x)), pool(x))


@pytest.mark.parametrize("dtype", [core.int32, core.int64], ids=str)
def test_pools_of_integers(dtype: core.dtype) -> None:
    x = (random(2, 5, 8, 9) * 100).to(dtype)
    same(core.max_pool2d_with_indices(in_format(x), 3, 2, 1), core.max_pool2d_with_indices(x, 3, 2, 1))
    if dtype is core.int64:
        same(core.avg_pool2d(in_format(x), 3, 2, 1, True, False), core.avg_pool2d(x, 3, 2, 1, True, False))


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("dtype", [core.float32, core.float64, core.float16], ids=str)
def test_gradients_of_pools(channels: int, dtype: core.dtype) -> None:
    x = random(2, channels, 9, 11, dtype=dtype)
    boxed = core._C._call_boxed
    values, indices = core.max_pool2d_with_indices(x, 3, 2, 1)
    g = random(*values.shape, dtype=dtype)
    wanted = boxed("max_pool2d_backward", g, indices, x.shape)
    found = boxed("max_pool2d_backward", g, in_format(indices), x.shape)
    assert found.stride() == in_format(x).stride()
    same(found, wanted)
    rest = [x.shape, [3], [2], [1], False, False, None]
    same(boxed("avg_pool2d_backward", in_format(g), *rest), boxed("avg_pool2d_backward", g, *rest), 1e-3)
    name = "adaptive_avg_pool2d_backward"
    same(boxed(name, in_format(g), x.shape), boxed(name, g, x.shape), 1e-3)


def test_an_index_out_of_range_is_an_error() -> None:
    g, indices = random(1, 4, 2, 2), core.full((1, 4, 2, 2), 99)
    with pytest.raises(IndexError, match="max_pool2d_backward"):
        core._C._call_boxed("max_pool2d_backward", g, in_format(indices), (1, 4, 5, 5))


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [core.float32, core.float64, core.bfloat16], ids=str)
@pytest.mark.parametrize("size", [(3, 5), (40, 30)], ids=str)
def test_batch_norm(channels: int, training: bool, dtype: core.dtype, size: tuple[int, int]) -> None:
    x = random(3, channels, *size, dtype=dtype) * 2 + 30
    w, b = random(channels, dtype=dtype), random(channels, dtype=dtype)
    results = []
    for one in (x, in_format(x)):
        mean, var = core.zeros(channels, dtype=dtype) + 29, core.ones(channels, dtype=dtype)
        made = core._C._call_boxed("batch_norm.aux", one, w, b, mean, var, training, 0.1, 1e-5, True)
        g = random(*x.shape, dtype=dtype)
        activation = core.relu(made[0])
        plain = core._C._call_boxed("_batch_norm_backward", g, one, w, *made[1:], training, [1, 1, 1])
        masked = core._C._call_boxed(
            "_masked_batch_norm_backward",
            g,
            activation,
            0.0,
            float("nan"),
            one,
            w,
            *made[1:],
            training,
            [1, 1, 1],
        )
        assert made[0].stride() == plain[0].stride() == masked[0].stride() == one.stride()
        results.append([*made, mean, var, *plain, *masked])
    same(results[1], results[0], {core.float32: 1e-3, core.float64: 1e-9}.get(dtype, 0.1))


@pytest.mark.parametrize(("channels", "groups"), [(3, 1), (8, 2), (24, 24), (66, 3), (130, 13)])
@pytest.mark.parametrize("dtype", [core.float32, core.float64, core.float16], ids=str)
def test_group_norm(channels: int, groups: int, dtype: core.dtype) -> None:
    x = random(3, channels, 7, 9, dtype=dtype) + 3
    g = random(*x.shape, dtype=dtype)
    for w, b in ((random(channels, dtype=dtype), random(channels, dtype=dtype)), (None, None)):
        results = []
        for one in (x, in_format(x)):
            made = core._C._call_boxed("group_norm.aux", one, groups, w, b, 1e-5, True)
            grads = core._C._call_boxed("_group_norm_backward", g, one, *made[1:], w, groups, [1, 1, 1])
            assert made[0].stride() == grads[0].stride() == one.stride()
            results.append([*made, *grads])
        same(results[1], results[0], {core.float32: 1e-3, core.float64: 1e-9}.get(dtype, 0.1))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    "pad", [(1, 2), (1, 0, 2, 1), (0, 0, 1, 2), (1, 1, 0, 2, 1, 1), (0, 1, 1, 0, 1, 1, 1, 0)]
)
def test_padding(mode: str, pad: tuple[int, ...]) -> None:
    for shape in ((3, 4, 5, 6), (3, 4, 3, 5, 6)):
        x = random(*shape)
        padded = core._pad(x, pad, mode)
        same(core._pad(in_format(x), pad, mode), padded)
        g = random(*padded.shape)
        wanted = core._C._call_boxed("_pad_backward", g, pad, mode)
        same(core._C._call_boxed("_pad_backward", in_format(g), pad, mode), wanted)


@pytest.mark.parametrize("dim", [0, 1, 2, 3, -1])
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_resampling(dim: int, mode: int) -> None:
    x = random(3, 20, 5, 6)
    made = core._resample(x, dim, 9, mode, False)
    same(core._resample(in_format(x), dim, 9, mode, False), made)
    rest = (dim, x.shape[dim], mode, False, None, False)
    found = core._C._call_boxed("_resample_backward", in_format(made), *rest)
    same(found, core._C._call_boxed("_resample_backward", made, *rest))


def test_dropout_keeps_the_same_elements() -> None:
    for x in (random(2, 5, 6, 7).abs(), random(2, 5, 6, 7, dtype=core.bfloat16).abs()):
        core.manual_seed(1)
        wanted = core.dropout(x, 0.4, True)
        for order in ((0, 2, 3, 1), (3, 1, 0, 2)):
            back = [order.index(d) for d in range(4)]
            y = x.permute(order).contiguous().permute(back)
            core.manual_seed(1)
            found = core.dropout(y, 0.4, True)
            assert found.stride() == y.stride()
            assert core.equal(found, wanted)


@pytest.mark.parametrize("dims", [(0,), (1,), (2, 3), (0, 1, 2, 3), ()])
def test_flip(dims: tuple[int, ...]) -> None:
    x = random(2, 5, 6, 7)
    found = in_format(x).flip(dims)
    assert found.stride() == in_format(x).stride()
    assert core.equal(found, x.flip(dims))


def test_joined_and_padded_with_zeros() -> None:
    x, y = random(2, 3, 4, 5), random(2, 6, 4, 5)
    joined = core.cat([in_format(x), in_format(y), core.empty(0)], 1)
    assert joined.stride() == (180, 1, 45, 9)
    assert core.equal(joined, core.cat([x, y], 1))
    assert core.cat([in_format(x), y], 1).is_contiguous()
    padded = core.constant_pad_nd(in_format(x), (1, -1, 2, 0, 1, 0), 7.0)
    assert padded.stride() == (120, 1, 20, 4)
    assert core.equal(padded, core.constant_pad_nd(x, (1, -1, 2, 0, 1, 0), 7.0))


@pytest.mark.parametrize(
    "rearrange",
    [
        lambda x: core.pixel_shuffle(x, 2),
        lambda x: core.pixel_unshuffle(x, 2),
        lambda x: core.channel_shuffle(x, 3),
    ],
    ids=["pixel_shuffle", "pixel_unshuffle", "channel_shuffle"],
)
def test_rearranged(rearrange: Callable[[core.Tensor], core.Tensor]) -> None:
    x = random(2, 12, 4, 6)
    found, wanted = rearrange(in_format(x)), rearrange(x)
    assert found.stride() == in_format(wanted).stride()
    assert core.equal(found, wanted)


def test_the_number_of_threads_does_not_change_sums() -> None:
    x = in_format(random(4, 24, 60, 60))
    results = []
    before = core.get_num_threads()
    for threads in (1, 2, 3):
        core.set_num_threads(threads)
        results.append(
            core._C._call_boxed("batch_norm.aux", x, None, None, None, None, True, 0.1, 1e-5, True)
        )
    core.set_num_threads(before)
    for other in results[1:]:
        assert all(core.equal(a, b) for a, b in zip(results[0], other, strict=True))


# Sizes and strides of a tensor, and whether it is taken for channels-last, as in PyTorch 2.13.
SUGGESTED = [
    ((2, 3, 4, 5), (60, 1, 15, 3), True),
    ((2, 3, 4, 5), (60, 20, 5, 1), False),
    ((2, 1, 4, 5), (20, 1, 5, 1), True),
    ((2, 1, 4, 5), (20, 20, 5, 1), False),
    ((2, 3, 1, 1), (3, 1, 3, 3), True),
    ((2, 3, 1, 1), (3, 1, 1, 1), False),
    ((2, 1, 1, 1), (1, 1, 1, 1), False),
    ((2, 3, 4, 5), (120, 1, 30, 6), True),
    ((2, 3, 4, 5), (0, 1, 15, 3), False),
    ((2, 3, 4, 5), (60, 0, 15, 3), False),
    ((2, 0, 4, 5), (1, 1, 1, 1), False),
    ((2, 3, 4, 5, 6), (360, 1, 90, 18, 3), True),
    ((2, 3, 4, 5, 6), (360, 120, 30, 6, 1), False),
]


@pytest.mark.parametrize(("shape", "strides", "last"), SUGGESTED)
def test_which_strides_are_channels_last(
    shape: tuple[int, ...], strides: tuple[int, ...], last: bool
) -> None:
    x = core.zeros(2000).as_strided(shape, strides)
    joined = core.cat([x, x])
    wanted = core.empty(joined.shape, memory_format=FORMATS[len(shape)] if last else core.contiguous_format)
    assert joined.stride() == wanted.stride()
