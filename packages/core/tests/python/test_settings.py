"""Settings are stored, and invalid settings raise errors."""

from __future__ import annotations

import warnings

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
    assert not any((x.is_hpu, x.is_maia, x.is_mkldnn, x.is_mtia, x.is_nested, x.is_vulkan))
    assert not core.is_inference(x)
    with core.inference_mode():
        assert core.is_inference(core.ones(1))
    assert x.to_dense() is x
    assert core.zeros(2, 3, 4, 5).to(memory_format=core.channels_last).dim_order() == (0, 2, 3, 1)
    assert core.zeros(2, 3).t().dim_order() == (1, 0)


def test_a_range_with_its_end() -> None:
    with pytest.warns(UserWarning, match="arange"):
        assert core.range(1, 4).tolist() == [1.0, 2.0, 3.0, 4.0]
    for dtype, stored in ((float, core.float64), (int, core.int64)):
        with pytest.warns(UserWarning, match="arange"):
            made = core.range(1, 4, dtype=dtype)
        assert (made.tolist(), made.dtype) == ([1, 2, 3, 4], stored)
    with pytest.warns(UserWarning, match="arange"):
        assert core.range(0, 1, 0.5, dtype=core.float64).tolist() == [0.0, 0.5, 1.0]
    with pytest.warns(UserWarning, match="arange"):
        assert core.range(3, 0, -2).tolist() == [3.0, 1.0]
    with pytest.warns(UserWarning, match="arange"), pytest.raises(RuntimeError):
        core.range(0, 1, 0)


@pytest.mark.filterwarnings("ignore:range")
def test_a_range_of_integers_has_its_end() -> None:
    for dtype in (core.int64, core.int32, core.uint8):
        assert core.range(1, 4, dtype=dtype).tolist() == [1, 2, 3, 4]
        assert core.range(0, 3.5, dtype=dtype).tolist() == [0, 1, 2, 3]
        assert core.range(0.5, 3, dtype=dtype).tolist() == [0, 1, 2, 3]
        assert core.range(5, 1.5, -2, dtype=dtype).tolist() == [5, 3, 1]
    assert core.range(0, 3, out=core.empty(0, dtype=core.int64)).tolist() == [0, 1, 2, 3]


def test_a_grid_wants_to_know_its_indexing() -> None:
    x = core.arange(2)
    with pytest.warns(UserWarning, match=r"meshgrid\(indexing\)"):
        first, _ = core.meshgrid(x, x)
    assert first.tolist() == [[0, 0], [1, 1]]


def test_warnings_and_threads() -> None:
    assert not core.is_warn_always_enabled()
    core.set_warn_always(True)
    assert core.is_warn_always_enabled()
    core.set_warn_always(False)
    assert core.get_num_interop_threads() == 1
    core.set_num_interop_threads(3)
    assert core.get_num_interop_threads() == 3
    core.set_num_interop_threads(1)
    assert core.set_flush_denormal(True) is False
    for call, error in (
        (lambda: core.set_warn_always(1), TypeError),  # type: ignore[arg-type]
        (lambda: core.set_num_interop_threads(0), RuntimeError),
        (lambda: core.set_num_interop_threads(1.0), TypeError),  # type: ignore[arg-type]
    ):
        with pytest.raises(error):
            call()


def test_as_what_tensors_are_made() -> None:
    try:
        core.set_default_tensor_type("torch.DoubleTensor")
        assert core.ones(1).dtype is core.float64
        core.set_default_tensor_type(core.FloatTensor)
        assert core.ones(1).dtype is core.float32
    finally:
        core.set_default_dtype(core.float32)
    for wrong in ("DoubleTensor", core.LongTensor, "torch.cuda.FloatTensor", 3):
        with pytest.raises(TypeError, match="set_default_tensor_type"):
            core.set_default_tensor_type(wrong)


def test_compile_is_the_identity_and_says_so_once() -> None:
    from rushlight_core import _compile

    _compile._warned = False

    def function(x: int) -> int:
        return x + 1

    with pytest.warns(UserWarning, match="no compiler"):
        assert core.compile(function) is function
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert core.compile(function, mode="max-autotune", fullgraph=True) is function

        @core.compile(dynamic=True)
        def decorated(x: int) -> int:
            return x

        assert decorated(2) == 2
    with pytest.raises(TypeError, match="int"):
        core.compile(3)
    with pytest.raises(RuntimeError, match="both"):
        core.compile(function, mode="default", options={})
