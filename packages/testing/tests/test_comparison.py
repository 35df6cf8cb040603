from typing import Any

import pytest

import rushlight_core as core
from rushlight_testing import assert_close, make_tensor


def test_equal_values_pass() -> None:
    assert_close(core.tensor([1.0, 2.0]), core.tensor([1.0, 2.0 + 1e-7]))
    assert_close({"a": [1, 2.0, 1j]}, {"a": [1, 2.0, 1j + 1e-9]})
    assert_close(core.tensor([float("nan")]), core.tensor([float("nan")]), equal_nan=True)


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (core.tensor([1.0, 2.0]), core.tensor([1.0, 3.0]), r"1 of 2 elements differ.*\(1,\)"),
        (core.tensor([1.0]), core.tensor([1.0, 1.0]), "shapes differ"),
        (core.tensor([1.0]), core.tensor([1]), "dtypes differ"),
        (core.tensor([float("nan")]), core.tensor([float("nan")]), "elements differ"),
        ([1, 2], [1], "lengths differ"),
        ({"a": 1}, {"b": 1}, "keys differ"),
        ({"a": [1, 2]}, {"a": [1, 3]}, r"\['a'\]\[1\]"),
    ],
)
def test_differences_are_named(a, b, text) -> None:
    with pytest.raises(AssertionError, match=f"(?s){text}"):
        assert_close(a, b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_tolerances_of_dtypes_are_pytorchs(dtype: str) -> None:
    rtol, atol = {
        "float16": (1e-3, 1e-5),
        "bfloat16": (1.6e-2, 1e-5),
        "float64": (1e-7, 1e-7),
        "complex128": (1e-7, 1e-7),
    }.get(dtype, (1.3e-6, 1e-5))
    kind = getattr(core, dtype)
    zero, one = core.zeros(1, dtype=kind), core.ones(1, dtype=kind)
    assert_close(zero + 0.9 * atol, zero)
    with pytest.raises(AssertionError, match="elements differ"):
        assert_close(zero + 1.2 * atol, zero)
    with pytest.raises(AssertionError, match="elements differ"):
        assert_close(one + 2.0 * (rtol + atol), one)


def test_tolerances_go_together() -> None:
    with pytest.raises(ValueError, match="both or neither"):
        assert_close(1.0, 1.0, rtol=1.0)


def test_make_tensor() -> None:
    t = make_tensor(3, 4, dtype=core.float32, noncontiguous=True, seed=1)
    assert tuple(t.shape) == (3, 4)
    assert not t.is_contiguous()
    assert make_tensor((2,), dtype=core.int64, low=1, high=3).tolist() in ([1, 1], [1, 2], [2, 1], [2, 2])
    assert_close(make_tensor(3, dtype=core.float64, seed=2), make_tensor(3, dtype=core.float64, seed=2))


@pytest.mark.parametrize("name", ["bool", "uint8", "int8", "int64", "uint16", "uint64", "float16", "float64"])
def test_limits_end_at_the_range_of_the_dtype(name: str) -> None:
    dtype = getattr(core, name)
    low, high = (0, 2) if name == "bool" else (-9, 5)
    values = [float(v) for v in make_tensor(200, dtype=dtype, low=-9, high=5, seed=3).tolist()]
    least = low if dtype.is_signed else 0
    assert least <= min(values) < least + 3
    assert high - 3 < max(values) < high


def test_parts_of_complex_numbers_are_drawn_separately() -> None:
    x = make_tensor(50, dtype=core.complex64, low=-1, high=1)
    assert ((x.real != 0) & (x.imag != 0) & (x.real != x.imag)).all()
    assert core.view_as_real(x).abs().max() <= 1


def test_values_come_from_the_default_generator() -> None:
    drawn = []
    for _ in range(2):
        core.manual_seed(0)
        drawn.append([make_tensor(3, dtype=dtype).tolist() for dtype in (core.float32, core.int32)])
    assert drawn[0] == drawn[1]


def test_the_whole_range_of_a_dtype() -> None:
    info = core.finfo(core.float64)
    assert make_tensor(20, dtype=core.float64, low=info.min, high=info.max).isfinite().all()


def test_formats_of_memory() -> None:
    x = make_tensor(2, 3, 4, 5, dtype=core.float32, memory_format=core.channels_last)
    assert x.is_contiguous(memory_format=core.channels_last)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"low": 3, "high": 3}, "low must be less than high"),
        ({"low": float("nan")}, "low must be less than high"),
        ({"low": 300, "high": 400, "dtype": core.uint8}, "torch.uint8 has no number from 300 to 400"),
        ({"dtype": core.int32, "requires_grad": True}, "cannot require grad"),
        ({"noncontiguous": True, "memory_format": core.channels_last}, "only one of them"),
    ],
)
def test_arguments_of_make_tensor(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_tensor(2, 2, **{"dtype": core.float32, **arguments})


def test_layouts_and_classes_are_compared() -> None:
    class Sub(core.Tensor):
        pass

    x = core.ones(2)
    assert_close(x.as_subclass(Sub), x)
    with pytest.raises(TypeError, match="classes differ: Sub and Tensor"):
        assert_close(x.as_subclass(Sub), x, allow_subclasses=False)
    with pytest.raises(AssertionError, match="the layouts differ"):
        assert_close(x.to_sparse(), x)
    assert_close(x.to_sparse(), x, check_layout=False)


def test_sparse_tensors() -> None:
    x = core.tensor([[0.0, 1.0], [2.0, 0.0]])
    coo, csr = x.to_sparse(), x.to_sparse_csr()
    for one in (coo, csr):
        assert_close(one, one * (1 + 1e-7), check_stride=True)
        for other in (x, coo, csr):
            assert_close(one, other, check_layout=False)
            with pytest.raises(AssertionError, match=r"1 of . elements differ"):
                assert_close(one, other + 1.0 * (x == 2).to_sparse(), check_layout=False)
        with pytest.raises(AssertionError, match="numbers of specified elements differ: 2 and 1"):
            assert_close(one, one.to_dense().tril().to_sparse(layout=one.layout))
        with pytest.raises(AssertionError, match=r"indices differ: \[.*\] and \[.*\]"):
            assert_close(one, x.flip(0).to_sparse(layout=one.layout))
        with pytest.raises(AssertionError, match="of the values 2 of 2 elements differ"):
            assert_close(one, one * 2)


def test_sparse_tensors_that_are_not_coalesced() -> None:
    twice = core.sparse_coo_tensor([[0, 0, 1], [1, 1, 1]], [0.5, 0.5, 2.0], (2, 2))
    once = core.sparse_coo_tensor([[0, 1], [1, 1]], [1.0, 2.0], (2, 2))
    assert_close(twice, once.coalesce())
    with pytest.raises(AssertionError, match="numbers of specified elements differ: 3 and 2"):
        assert_close(twice, once)


def test_complex_elements() -> None:
    x = core.tensor([1 + 2j, complex("nan"), complex("inf")], dtype=core.complex128)
    near = core.tensor([1 + 2.0000001j, complex("nan"), complex("inf")], dtype=core.complex128)
    assert_close(near, x, rtol=1e-6, atol=0, equal_nan=True)
    for other in (
        [1 + 2.1j, complex("nan"), complex("inf")],
        [1 + 2j, 0, complex("inf")],
        [1 + 2j, complex("nan"), 3],
    ):
        with pytest.raises(AssertionError, match="1 of 3 elements"):
            assert_close(core.tensor(other, dtype=core.complex128), x, rtol=1e-6, atol=0, equal_nan=True)
    with pytest.raises(AssertionError, match="1 of 3 elements"):
        assert_close(near, x, rtol=1e-6, atol=0)
