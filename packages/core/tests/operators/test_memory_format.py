"""Results have the memory format of their inputs: for inputs in channels last, results are in channels last."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight_core as core


def random(*shape: int, dtype: core.dtype = core.float32) -> core.Tensor:
    source = np.random.default_rng(sum(shape))
    return core.from_numpy(source.standard_normal(shape)).to(dtype)


CASES = [
    pytest.param((2, 3, 8, 9), (4, 3, 3, 3), {}, id="small"),
    pytest.param((2, 16, 20, 20), (32, 16, 3, 3), {"padding": 1}, id="vendor"),
    pytest.param((1, 2, 30, 30), (2, 1, 3, 3), {"groups": 2, "padding": 1}, id="depthwise, few channels"),
    pytest.param((2, 20, 9, 30), (40, 1, 3, 3), {"groups": 20, "padding": 1}, id="depthwise, multiplier"),
    pytest.param(
        (1, 24, 70, 80), (24, 1, 3, 3), {"groups": 24, "stride": 2, "padding": 1}, id="depthwise, strips"
    ),
    pytest.param((2, 16, 30, 30), (8, 16, 1, 1), {}, id="pointwise"),
    pytest.param((2, 8, 21, 30), (12, 8, 1, 1), {"stride": 2}, id="pointwise, stride"),
    pytest.param((2, 6, 9, 8), (4, 3, 1, 1), {"groups": 2, "stride": 3}, id="pointwise, groups"),
    pytest.param((9, 4, 60, 60), (5, 4, 1, 1), {}, id="pointwise, many pixels"),
    pytest.param((2, 8, 9, 9), (1, 8, 1, 1), {}, id="pointwise, one output channel"),
    pytest.param(
        (2, 4, 7, 6), (6, 2, 3, 2), {"groups": 2, "stride": 2, "dilation": 2, "padding": 2}, id="groups"
    ),
    pytest.param((2, 3, 5, 6, 4), (4, 3, 3, 2, 2), {}, id="3d"),
]


@pytest.mark.parametrize(("shape", "kernel", "options"), CASES)
@pytest.mark.parametrize("which", ["input", "weight", "both"])
@pytest.mark.parametrize("dtype", [core.float32, core.float64, core.bfloat16], ids=str)
def test_convolutions(shape, kernel, options, which: str, dtype: core.dtype) -> None:
    function = core.conv2d if len(shape) == 4 else core.conv3d
    last = core.channels_last if len(shape) == 4 else core.channels_last_3d
    x, w, bias = random(*shape, dtype=dtype), random(*kernel, dtype=dtype), random(kernel[0], dtype=dtype)
    wanted = function(x, w, bias, **options)
    assert wanted.is_contiguous()
    found = function(
        x.to(memory_format=last) if which != "weight" else x,
        w.to(memory_format=last) if which != "input" else w,
        bias,
        **options,
    )
    assert found.is_contiguous(memory_format=last)  # also if the weight has one channel or a 1x1 kernel
    tolerance = 1e-4 if dtype != core.bfloat16 else 0.1
    assert core.allclose(found.to(core.float64), wanted.to(core.float64), tolerance, tolerance)


@pytest.mark.parametrize(("shape", "kernel", "options"), CASES)
@pytest.mark.parametrize("dtype", [core.float32, core.float64], ids=str)
def test_gradients_of_convolutions(shape, kernel, options, dtype: core.dtype) -> None:
    dims = len(shape) - 2
    last = core.channels_last if dims == 2 else core.channels_last_3d
    x, w = random(*shape, dtype=dtype), random(*kernel, dtype=dtype)
    lists = [
        [options.get(name, default)] * dims
        for name, default in [("stride", 1), ("padding", 0), ("dilation", 1)]
    ]
    rest = [*lists, False, [0] * dims, options.get("groups", 1)]
    g = random(*core._C._call_boxed("convolution", x, w, None, *rest).shape, dtype=dtype)
    for mask in ([1, 1, 1], [1, 0, 0], [0, 1, 0]):
        wanted = core._C._call_boxed("convolution_backward", g, x, w, *rest, mask)
        for grad, source in (
            (g, x.to(memory_format=last)),
            (g.to(memory_format=last), x.to(memory_format=last)),
        ):
            found = core._C._call_boxed("convolution_backward", grad, source, w, *rest, mask)
            for a, b in zip(found, wanted, strict=True):
                assert (a is None) == (b is None)
                assert a is None or core.allclose(a, b, 1e-4, 1e-3 if dtype is core.float32 else 1e-9)


def test_to_gives_the_strides_of_the_format() -> None:
    """A tensor that is in both formats gets the strides of the one that is asked for, as in PyTorch."""
    for shape, last in (((2, 1, 4, 5), (20, 1, 5, 1)), ((6, 3, 1, 1), (3, 1, 3, 3))):
        x = random(*shape)
        y = x.to(memory_format=core.channels_last)
        assert y.stride() == last
        assert y.to(memory_format=core.channels_last) is y
        assert y.to(memory_format=core.contiguous_format).stride() == x.stride()
        assert y.to(memory_format=core.preserve_format) is y
        assert x.contiguous(memory_format=core.channels_last) is x


def test_gradients_of_weights_have_their_strides() -> None:
    x, w = random(2, 4, 6, 6), random(8, 4, 3, 3)
    rest = [[1, 1], [0, 0], [1, 1], False, [0, 0], 1]
    g = random(2, 8, 4, 4)
    for format_of_x in (core.channels_last, core.contiguous_format):
        for format_of_w in (core.channels_last, core.contiguous_format):
            xx, ww = x.to(memory_format=format_of_x), w.to(memory_format=format_of_w)
            dx, dw, _ = core._C._call_boxed("convolution_backward", g, xx, ww, *rest, [1, 1, 0])
            assert dw.stride() == ww.stride()
            last = core.channels_last in (format_of_x, format_of_w)
            assert dx.is_contiguous(memory_format=core.channels_last if last else core.contiguous_format)


@pytest.mark.parametrize("size", [4, 18])
def test_transposed_convolutions(size: int) -> None:
    x, w, bias = random(2, 16, size, size), random(16, 8, 3, 3), random(8)
    wanted = core.conv_transpose2d(x, w, bias, stride=2, output_padding=1)
    found = core.conv_transpose2d(x.to(memory_format=core.channels_last), w, bias, stride=2, output_padding=1)
    assert found.is_contiguous(memory_format=core.channels_last)
    assert core.allclose(found, wanted, 1e-4, 1e-4)


def test_out_and_nothing() -> None:
    x = random(2, 3, 8, 8).to(memory_format=core.channels_last)
    assert core.conv2d(x[:0], random(4, 3, 3, 3)).shape == (0, 4, 6, 6)
    assert core.conv2d(random(2, 1, 8, 8), random(4, 1, 3, 3)).is_contiguous()  # one channel: row-major


def test_empty_in_a_format() -> None:
    x = core.empty(2, 3, 4, 5, memory_format=core.channels_last)
    assert x.stride() == (60, 1, 15, 3)
    assert core.empty((2, 3), memory_format=core.contiguous_format).is_contiguous()
    with pytest.raises(
        RuntimeError, match=r"empty\(memory_format\): channels_last is for tensors of 4 dimensions"
    ):
        core.empty(2, 3, memory_format=core.channels_last)
    with pytest.raises(ValueError, match="empty"):
        core.empty(2, memory_format="sideways")


def test_strides_of_a_new_tensor() -> None:
    x = core.zeros(1, dtype=core.int16).new_empty_strided((2, 3), (1, 2))
    assert x.stride() == (1, 2)
    assert x.dtype == core.int16


def test_a_copy_of_strided_memory() -> None:
    x = core.arange(12)
    y = core.as_strided_copy(x, (2, 3), (1, 2), 1)
    assert y.tolist() == [[1, 3, 5], [2, 4, 6]]
    assert y.is_contiguous()
    assert y._base is None


def test_a_copy_of_bytes() -> None:
    x = core.tensor([1, -1], dtype=core.int16)
    y = core.view_copy(x, core.uint8)
    assert y.tolist() == [1, 0, 255, 255]
    y.zero_()
    assert x.tolist() == [1, -1]


# Shape and strides of an input, and the strides that a tensor made like it has in PyTorch 2.13.
LIKE = [
    ((3, 4), (0, 1), (4, 1)),
    ((3, 4), (1, 0), (4, 1)),
    ((3, 4, 5), (0, 1, 0), (20, 5, 1)),
    ((2, 3, 4), (0, 0, 1), (12, 4, 1)),
    ((4, 3, 2), (1, 4, 0), (2, 8, 1)),
    ((5, 6, 3, 4), (24, 1, 0, 6), (72, 1, 6, 18)),
    ((3, 4), (2, 6), (1, 3)),
    ((4, 3, 2), (1, 8, 4), (1, 8, 4)),
]


@pytest.mark.parametrize(("shape", "strides", "wanted"), LIKE)
def test_results_lie_as_their_inputs(shape, strides, wanted) -> None:
    x = random(200).as_strided(shape, strides)
    made = [x * 2, x + x, x.exp(), x.clone(), core.empty_like(x), x.to(core.float64), core.where(x > 0, x, x)]
    assert [t.stride() for t in made] == [wanted] * len(made)
    assert (core.empty(200, device="meta").as_strided(shape, strides) * 2).stride() == wanted


def test_broadcast_operands_have_a_say() -> None:
    last = random(1, 3, 4, 5).to(memory_format=core.channels_last)
    assert (random(2, 1, 1, 1) + last).stride() == (60, 1, 15, 3)
    assert (random(3, 4) + random(4, 3).t()).stride() == (4, 1)
    assert (random(4, 3).t() + random(3, 4)).stride() == (1, 3)
    # Row-major operands give row-major results.
    assert (random(3, 1) + random(4)).stride() == (4, 1)
