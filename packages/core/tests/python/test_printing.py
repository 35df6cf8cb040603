"""repr, str and format. The expected texts are those that PyTorch 2.13 prints for the same tensors."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import rushlight_core as core

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda: core.tensor(3), "tensor(3)"),
        (lambda: core.tensor(-0.0), "tensor(-0.)"),
        (lambda: core.tensor(1.5), "tensor(1.5000)"),
        (lambda: core.tensor(True), "tensor(True)"),
        (lambda: core.tensor([True, False]), "tensor([ True, False])"),
        (lambda: core.tensor([1.0, 2.0]), "tensor([1., 2.])"),
        (lambda: core.tensor([1.0, NAN]), "tensor([1., nan])"),
        (lambda: core.tensor([10.0, NAN, -INF]), "tensor([10., nan, -inf])"),
        (lambda: core.tensor([NAN, INF]), "tensor([nan, inf])"),
        (lambda: core.tensor([INF, 1e10]), "tensor([       inf, 1.0000e+10])"),
        (lambda: core.tensor([1e-5]), "tensor([1.0000e-05])"),
        (lambda: core.tensor([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
        (lambda: core.tensor([0.001, 0.5]), "tensor([0.0010, 0.5000])"),
        (lambda: core.tensor([0.0005, 0.6]), "tensor([5.0000e-04, 6.0000e-01])"),
        (lambda: core.tensor([1.0, 1001.0]), "tensor([1.0000e+00, 1.0010e+03])"),
        (lambda: core.tensor([-1, 100]), "tensor([ -1, 100])"),
        (
            lambda: core.tensor([0.1, 1000], dtype=core.bfloat16),
            "tensor([1.0010e-01, 1.0000e+03], dtype=torch.bfloat16)",
        ),
        (lambda: core.tensor([1], dtype=core.uint8), "tensor([1], dtype=torch.uint8)"),
        (lambda: core.tensor([]), "tensor([])"),
        (lambda: core.zeros(2, 0), "tensor([], size=(2, 0))"),
        (lambda: core.zeros(0, dtype=core.int64), "tensor([], dtype=torch.int64)"),
        (lambda: core.zeros(2, 0, dtype=core.int32), "tensor([], size=(2, 0), dtype=torch.int32)"),
        (lambda: core.zeros(3, device="meta"), "tensor(..., device='meta', size=(3,))"),
        (
            lambda: core.zeros(3, device="meta", dtype=core.int64),
            "tensor(..., device='meta', size=(3,), dtype=torch.int64)",
        ),
        (lambda: core.tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
        (
            lambda: core.tensor([[1.0, 2.0], [3.0, 4.5]]),
            "tensor([[1.0000, 2.0000],\n        [3.0000, 4.5000]])",
        ),
        (
            lambda: core.arange(8).view(2, 2, 2),
            "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])",
        ),
        (
            lambda: core.arange(1001),
            "tensor([   0,    1,    2,  ...,  998,  999, 1000])",
        ),
        (
            lambda: core.arange(1200).view(30, 40),
            "tensor([[   0,    1,    2,  ...,   37,   38,   39],\n"
            "        [  40,   41,   42,  ...,   77,   78,   79],\n"
            "        [  80,   81,   82,  ...,  117,  118,  119],\n"
            "        ...,\n"
            "        [1080, 1081, 1082,  ..., 1117, 1118, 1119],\n"
            "        [1120, 1121, 1122,  ..., 1157, 1158, 1159],\n"
            "        [1160, 1161, 1162,  ..., 1197, 1198, 1199]])",
        ),
        (
            lambda: core.arange(30),
            "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
            "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])",
        ),
        (
            lambda: core.arange(17, dtype=core.int16),
            "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16],\n"
            "       dtype=torch.int16)",
        ),
    ],
)
def test_texts(made: Callable[[], core.Tensor], text: str) -> None:
    assert repr(made()) == text
    assert str(made()) == text


def test_options() -> None:
    t = core.tensor([1.23456, 100.0])
    core.set_printoptions(precision=2)
    assert repr(t) == "tensor([  1.23, 100.00])"
    core.set_printoptions(sci_mode=True)
    assert repr(t) == "tensor([1.23e+00, 1.00e+02])"
    core.set_printoptions(profile="default", threshold=4, edgeitems=1)
    assert repr(core.arange(5)) == "tensor([0,  ..., 4])"
    core.set_printoptions(profile="full")
    assert "..." not in repr(core.arange(2000))
    core.set_printoptions(profile="default", linewidth=20)
    assert repr(core.arange(6)) == "tensor([0, 1, 2, 3,\n        4, 5])"
    with core.printoptions(precision=1, linewidth=80):
        assert repr(t) == "tensor([  1.2, 100.0])"
    assert core.get_printoptions()["linewidth"] == 20
    with pytest.raises(ValueError, match="'short'"):
        core.set_printoptions(profile="wide")


def test_format_of_a_number_and_of_a_tensor() -> None:
    assert f"{core.tensor(1.5):.3f}" == "1.500"
    assert f"{core.tensor(7):>4d}" == "   7"
    assert f"{core.tensor([1.0])}" == "tensor([1.])"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{core.tensor([1.0]):.2f}"


def test_the_default_dtype_is_not_shown() -> None:
    core.set_default_dtype(core.float64)
    try:
        assert repr(core.tensor([1.0])) == "tensor([1.])"
        assert repr(core.tensor([1.0], dtype=core.float32)) == "tensor([1.], dtype=torch.float32)"
        assert "dtype" not in repr(core.tensor([1j], dtype=core.complex128).to_sparse())
    finally:
        core.set_default_dtype(core.float32)


def test_obvious_dtypes_of_sparse_tensors_are_not_shown() -> None:
    assert "dtype" not in repr(core.tensor([1j]).to_sparse())
    assert "dtype=torch.complex128" in repr(core.tensor([1j], dtype=core.complex128).to_sparse())


def test_subclasses_show_their_name() -> None:
    class Celsius(core.Tensor):
        pass

    assert repr(core.tensor([20.0]).as_subclass(Celsius)) == "Celsius([20.])"
