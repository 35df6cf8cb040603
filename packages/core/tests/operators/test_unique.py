"""unique and unique_consecutive, whose number of results depends on their arguments, so no entry can test them."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight_core as core

NAN = float("nan")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (60,), (4, 5, 3)])
def test_elements(dtype: str, shape: tuple[int, ...]) -> None:
    """Values, inverse and counts are the same as in NumPy."""
    array = np.random.default_rng(0).integers(0, 7, shape)
    t = core.tensor(array.tolist()).view(shape).to(getattr(core, dtype))
    values, inverse, counts = core.unique(t, return_inverse=True, return_counts=True)
    plain = t.to(core.float64).numpy()
    wanted, wanted_inverse, wanted_counts = np.unique(plain, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(values.to(core.float64).numpy(), wanted)
    np.testing.assert_array_equal(inverse.numpy(), wanted_inverse.reshape(shape))
    np.testing.assert_array_equal(counts.numpy(), wanted_counts)
    assert values.dtype == t.dtype
    assert values[inverse].tolist() == t.tolist()


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_slices(dim: int) -> None:
    array = np.random.default_rng(1).integers(0, 2, (6, 5, 2))
    t = core.tensor(array.tolist())
    values, inverse, counts = t.unique(return_inverse=True, return_counts=True, dim=dim)
    wanted, wanted_inverse, wanted_counts = np.unique(
        array, return_inverse=True, return_counts=True, axis=dim
    )
    np.testing.assert_array_equal(values.numpy(), wanted)
    np.testing.assert_array_equal(inverse.numpy(), wanted_inverse.reshape(-1))
    np.testing.assert_array_equal(counts.numpy(), wanted_counts)


def test_one_result_or_several() -> None:
    t = core.tensor([3, 1, 3])
    assert isinstance(core.unique(t), core.Tensor)
    assert [x.tolist() for x in core.unique(t, True, True)] == [[1, 3], [1, 0, 1]]
    assert [x.tolist() for x in t.unique(return_counts=True)] == [[1, 3], [1, 2]]


def test_consecutive() -> None:
    t = core.tensor([1, 1, 2, 2, 2, 1])
    values, inverse, counts = core.unique_consecutive(t, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 1], [0, 0, 1, 1, 1, 2], [2, 3, 1])
    assert core.tensor([[1, 2], [1, 2], [0, 0]]).unique_consecutive(dim=0).tolist() == [[1, 2], [0, 0]]
    assert core.unique_consecutive(core.empty(0)).tolist() == []


def test_nan_and_zeros() -> None:
    values, counts = core.unique(core.tensor([NAN, 1.0, NAN, 0.0, -0.0]), return_counts=True)
    assert values.tolist()[:2] == [0.0, 1.0]
    assert counts.tolist() == [2, 1, 1, 1]
    assert core.isnan(values[2:]).all()


def test_bad_arguments() -> None:
    with pytest.raises(IndexError, match="unique"):
        core.unique(core.ones(2, 2), dim=2)
    with pytest.raises(IndexError, match="unique"):
        core.unique(core.tensor(1.0), dim=0)
    with pytest.raises(RuntimeError, match="no elements"):
        core.unique(core.empty(0, 3), dim=1)
    with pytest.raises(TypeError, match="must be a Tensor"):
        core.unique([1, 2])  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="unique_consecutive"):
        core.unique_consecutive(core.empty(3, device="meta"))


def test_a_subclass_answers_itself() -> None:
    class Traced(core.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            return func.__name__, sorted(kwargs or {})

    t = core.tensor([1, 1]).as_subclass(Traced)
    assert core.unique(t)[0] == "unique"
