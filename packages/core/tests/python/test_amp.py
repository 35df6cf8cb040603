"""autocast and GradScaler. The tests of autograd cover the gradients of conversions."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_core import amp


def ones(*shape: int, dtype: Any = core.float32) -> Any:
    return core.ones(shape, dtype=dtype)


def product() -> Any:
    return (ones(2, 2) @ ones(2, 2)).dtype


def test_products_are_computed_in_a_smaller_dtype() -> None:
    with core.autocast("cpu"):
        assert product() is core.bfloat16
        assert core.einsum("ij,jk->ik", ones(2, 2), ones(2, 2)).dtype is core.bfloat16
        assert core.addmm(ones(2, 2), ones(2, 2), ones(2, 2)).dtype is core.bfloat16
        assert (ones(2, 2, dtype=core.float64) @ ones(2, 2, dtype=core.float64)).dtype is core.float64
        assert (ones(2, 2) + ones(2, 2)).dtype is core.float32
        assert core.mm(ones(2, 2), ones(2, 2), out=ones(2, 2)).dtype is core.float32
        a, b = core.arange(6.0).reshape(2, 3), core.linspace(-1, 1, 12).reshape(3, 4)
        np.testing.assert_array_equal(
            (a @ b).float().numpy(), (a.to(core.bfloat16) @ b.to(core.bfloat16)).float().numpy()
        )
    assert product() is core.float32


def test_what_needs_digits_is_computed_in_float32() -> None:
    small = ones(2, 2, dtype=core.bfloat16)
    assert small.prod().dtype is core.bfloat16
    with core.autocast("cpu"):
        assert small.prod().dtype is core.float32
        assert core.cdist(small, small).dtype is core.float32
        assert core.fft.fft(small).dtype is core.complex64
        assert core.linalg.inv(core.eye(2, dtype=core.bfloat16)).dtype is core.float32
        assert core.linalg.vector_norm(small).dtype is core.bfloat16
        assert core.cat([small, ones(1, 2)]).dtype is core.float32


def test_blocks_nest() -> None:
    with core.autocast("cpu"):
        with core.autocast("cpu", enabled=False):
            assert product() is core.float32
            assert not amp.is_autocast_enabled("cpu")
            with core.autocast("cpu", dtype=core.float16):
                assert product() is core.float16
                assert amp.get_autocast_dtype("cpu") is core.float16
            assert product() is core.float32
        assert product() is core.bfloat16
        with pytest.raises(ZeroDivisionError), core.autocast("cpu", dtype=core.float16):
            raise ZeroDivisionError
        assert product() is core.bfloat16
        assert amp.is_autocast_enabled("cpu")
    assert not amp.is_autocast_enabled("cpu")


def test_as_a_decorator() -> None:
    @core.autocast("cpu")
    def inner(depth: int) -> Any:
        """What it does."""
        return inner(depth - 1) if depth else product()

    assert inner(0) is inner(2) is core.bfloat16
    assert inner.__doc__ == "What it does."
    assert product() is core.float32


def test_other_threads_are_as_they_were() -> None:
    seen = []
    with core.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(product()))
        thread.start()
        thread.join()
    assert seen == [core.float32]


def test_what_cannot_be_warns_and_does_nothing() -> None:
    with pytest.warns(UserWarning, match="float32"), core.autocast("cpu", dtype=core.float32):
        assert product() is core.float32
    if not core.devices.device_count("cuda"):
        with pytest.warns(UserWarning, match="no GPU"), core.autocast("cuda"):
            assert product() is core.float32
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with core.autocast("cuda", enabled=False):
                assert product() is core.float32
    with pytest.raises(RuntimeError, match="'tpu'"):
        core.autocast("tpu")
    with pytest.raises(ValueError, match="int"):
        core.autocast(3)  # type: ignore[arg-type]
    assert amp.is_autocast_available("cpu")
    assert not amp.is_autocast_available("tpu")


def test_the_default_dtype() -> None:
    assert amp.get_autocast_dtype("cpu") is core.bfloat16
    amp.set_autocast_dtype("cpu", core.float16)
    try:
        with core.autocast("cpu"):
            assert product() is core.float16
    finally:
        amp.set_autocast_dtype("cpu", core.bfloat16)


# --- GradScaler ---


class Steps:
    """An optimizer that counts its steps."""

    def __init__(self, *grads: Any) -> None:
        parameters = [core.ones(grad.shape, dtype=grad.dtype, device=grad.device) for grad in grads]
        for parameter, grad in zip(parameters, grads, strict=True):
            parameter.grad = grad
        self.param_groups = [{"params": parameters}]
        self.count = 0

    def step(self) -> int:
        self.count += 1
        return self.count


def used_scaler(**options: float) -> core.GradScaler:
    """Return a scaler that has scaled a loss."""
    scaler = core.GradScaler("cpu", **options)
    scaler.scale(ones(1))
    return scaler


def test_gradients_are_divided_and_the_scale_grows() -> None:
    scaler = core.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    assert scaler.scale(ones(2)).tolist() == [8.0, 8.0]
    assert [t.tolist() for t in scaler.scale([ones(1), ones(1)])] == [[8.0], [8.0]]
    for scale in (8.0, 16.0, 16.0, 32.0):
        grad = core.full((2,), scaler.get_scale())
        optimizer = Steps(grad)
        assert scaler.step(optimizer) == 1
        assert grad.tolist() == [1.0, 1.0]
        scaler.update()
        assert scaler.get_scale() == scale


def test_steps_with_gradients_that_are_not_finite_are_left_out() -> None:
    scaler = used_scaler(init_scale=8.0)
    bad, good = Steps(core.tensor([1.0, float("inf")]), ones(2)), Steps(ones(2))
    assert scaler.step(bad) is None
    assert scaler.step(good) == 1
    scaler.update()
    assert (bad.count, scaler.get_scale()) == (0, 4.0)


@pytest.mark.parametrize("layout", [core.sparse_coo, core.sparse_csr])
def test_sparse_gradients_are_divided(layout: Any) -> None:
    scaler = used_scaler(init_scale=8.0)
    good, bad = (core.tensor([[0.0, 8.0], [n, 0.0]]).to_sparse(layout=layout) for n in (16.0, float("inf")))
    assert scaler.step(Steps(good, ones(2))) == 1
    assert good.layout is layout
    assert good.to_dense().tolist() == [[0.0, 1.0], [2.0, 0.0]]
    assert scaler.step(Steps(ones(2), bad)) is None
    scaler.update()
    assert scaler.get_scale() == 4.0


def test_duplicates_in_sparse_gradients_are_divided_once() -> None:
    scaler = used_scaler(init_scale=8.0)
    grad = core.sparse_coo_tensor([[2, 2, 0]], [[8.0, 0.0], [16.0, 8.0], [4.0, 4.0]], (3, 2))
    scaler.unscale_(Steps(grad))
    assert grad.to_dense().tolist() == [[0.5, 0.5], [0.0, 0.0], [3.0, 1.0]]


def test_gradients_are_unchanged_if_they_cannot_be_checked() -> None:
    scaler = used_scaler(init_scale=8.0)
    grad = ones(2)
    optimizer = Steps(grad, core.ones(2, device="meta"))  # on `meta`, there are no values to check
    for _ in range(2):
        with pytest.raises(RuntimeError, match="meta"):
            scaler.step(optimizer)
    assert (grad.tolist(), optimizer.count) == ([1.0, 1.0], 0)


def test_unscaled_gradients_are_refused() -> None:
    scaler = core.GradScaler("cpu")
    grad = ones(2)
    optimizer = Steps(grad)
    for method, arguments in (("unscale_", (optimizer,)), ("step", (optimizer,)), ("update", (4.0,))):
        with pytest.raises(AssertionError, match=f"^Attempted {method} but _scale is None"):
            getattr(scaler, method)(*arguments)
    assert (grad.tolist(), optimizer.count, scaler.get_scale()) == ([1.0, 1.0], 0, 2.0**16)
    scaler.scale([ones(2)])
    assert scaler.step(optimizer) == 1


def test_order_of_calls() -> None:
    scaler = used_scaler()
    optimizer = Steps(ones(2))
    with pytest.raises(RuntimeError, match="not called"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) was called already"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="closure"):
        scaler.step(optimizer, closure=lambda: None)
    with pytest.raises(ValueError, match="float16"):
        scaler.unscale_(Steps(ones(2, dtype=core.float16)))
    scaler.update(4.0)
    assert scaler.get_scale() == 4.0


def test_state() -> None:
    scaler, other = used_scaler(init_scale=2.0), core.GradScaler("cpu")
    scaler.step(Steps(ones(2)))
    scaler.update()
    state = scaler.state_dict()
    assert sorted(state) == ["_growth_tracker", "backoff_factor", "growth_factor", "growth_interval", "scale"]
    other.load_state_dict(state)
    assert other.state_dict() == state
    with pytest.raises(RuntimeError, match="empty"):
        other.load_state_dict({})


def test_disabled() -> None:
    scaler = core.GradScaler("cpu", enabled=False)
    optimizer = Steps(core.full((2,), float("nan")))
    assert scaler.step(optimizer) == 1
    scaler.update()
    assert (scaler.is_enabled(), scaler.get_scale(), scaler.state_dict()) == (False, 1.0, {})
    x = ones(1)
    assert scaler.scale(x) is x
    for wrong in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            core.GradScaler("cpu", **wrong)
