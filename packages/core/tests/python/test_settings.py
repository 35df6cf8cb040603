"""Settings that programs state: they are kept, and what is no setting raises."""

from __future__ import annotations

import pytest

import rushlight_core as core


def test_precision_of_products() -> None:
    assert core.get_float32_matmul_precision() == "highest"
    core.set_float32_matmul_precision("high")
    assert core.get_float32_matmul_precision() == "high"
    core.set_float32_matmul_precision("highest")
    with pytest.raises(RuntimeError, match="'highest', 'high' or 'medium'"):
        core.set_float32_matmul_precision("low")


def test_determinism() -> None:
    assert not core.are_deterministic_algorithms_enabled()
    core.use_deterministic_algorithms(True, warn_only=True)
    assert core.is_deterministic_algorithms_warn_only_enabled()
    assert core.get_deterministic_debug_mode() == 1
    core.set_deterministic_debug_mode("error")
    assert core.are_deterministic_algorithms_enabled()
    assert not core.is_deterministic_algorithms_warn_only_enabled()
    core.set_deterministic_debug_mode(0)
    assert not core.are_deterministic_algorithms_enabled()
    for wrong, error in (("loud", RuntimeError), (3, RuntimeError), (1.5, TypeError)):
        with pytest.raises(error, match="set_deterministic_debug_mode"):
            core.set_deterministic_debug_mode(wrong)


def test_what_a_tensor_is_not() -> None:
    x = core.ones(2)
    assert not any((x.is_mps, x.is_xla, x.is_xpu, x.is_ipu, x.is_sparse_csr, x.is_conj(), x.is_neg()))
    assert not core.is_inference(x)
    with core.inference_mode():
        assert core.is_inference(core.ones(1))
    assert x.to_dense() is x
    assert core.zeros(2, 3, 4, 5).to(memory_format=core.channels_last).dim_order() == (0, 2, 3, 1)
    assert core.zeros(2, 3).t().dim_order() == (1, 0)


def test_a_range_with_its_end() -> None:
    with pytest.warns(UserWarning, match="arange"):
        assert core.range(1, 4).tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.warns(UserWarning, match="arange"):
        assert core.range(0, 1, 0.5, dtype=core.float64).tolist() == [0.0, 0.5, 1.0]
    with pytest.warns(UserWarning, match="arange"):
        assert core.range(3, 0, -2).tolist() == [3.0, 1.0]
    with pytest.warns(UserWarning, match="arange"), pytest.raises(RuntimeError):
        core.range(0, 1, 0)


def test_a_grid_wants_to_know_its_indexing() -> None:
    x = core.arange(2)
    with pytest.warns(UserWarning, match=r"meshgrid\(indexing\)"):
        first, _ = core.meshgrid(x, x)
    assert first.tolist() == [[0, 0], [1, 1]]
