import pytest

import rushlight_core as core
from rushlight_testing import assert_close, make_tensor


def test_equal_values_pass() -> None:
    assert_close(core.tensor([1.0, 2.0]), core.tensor([1.0, 2.0 + 1e-7]))
    assert_close({"a": [1, 2.0]}, {"a": [1, 2.0]})
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


def test_tolerances_go_together() -> None:
    with pytest.raises(ValueError, match="both or none"):
        assert_close(1.0, 1.0, rtol=1.0)


def test_make_tensor() -> None:
    t = make_tensor(3, 4, dtype=core.float32, noncontiguous=True, seed=1)
    assert tuple(t.shape) == (3, 4)
    assert not t.is_contiguous()
    assert make_tensor((2,), dtype=core.int64, low=1, high=3).tolist() in ([1, 1], [1, 2], [2, 1], [2, 2])
    assert_close(make_tensor(3, dtype=core.float64, seed=2), make_tensor(3, dtype=core.float64, seed=2))


def test_layouts_and_classes_are_compared() -> None:
    class Sub(core.Tensor):
        pass

    class Other(core.Tensor):
        layout = core.sparse_coo

    x = core.ones(2)
    assert_close(x.as_subclass(Sub), x)
    with pytest.raises(TypeError, match="classes differ: Sub and Tensor"):
        assert_close(x.as_subclass(Sub), x, allow_subclasses=False)
    with pytest.raises(AssertionError, match="the layouts differ"):
        assert_close(x.as_subclass(Other), x)
    assert_close(x.as_subclass(Other), x, check_layout=False)


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
