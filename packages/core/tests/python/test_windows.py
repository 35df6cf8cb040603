"""Windows, compared with SciPy's windows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal.windows as scipy_windows

import rushlight_core as core

WINDOWS = {
    "bartlett_window": (scipy_windows.bartlett, {}),
    "hamming_window": (scipy_windows.hamming, {}),
    "hann_window": (scipy_windows.hann, {}),
    "blackman_window": (scipy_windows.blackman, {}),
    "kaiser_window": (scipy_windows.kaiser, {"beta": 12.0}),
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("length", [0, 1, 2, 7, 32])
@pytest.mark.parametrize("periodic", [True, False])
def test_values(name: str, length: int, periodic: bool) -> None:
    reference, arguments = WINDOWS[name]
    wanted = reference(length, sym=not periodic, **arguments)
    found = getattr(core, name)(length, periodic, dtype=core.float64)
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-12)


@pytest.mark.parametrize("name", WINDOWS)
def test_arguments(name: str) -> None:
    window = getattr(core, name)
    assert window(3).dtype == core.float32
    assert window(3, dtype=core.float16, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match=r"window_length\): must not be negative"):
        window(-1)
    with pytest.raises(RuntimeError, match=r"dtype\): must be a floating-point"):
        window(3, dtype=core.int64)


def test_parameters() -> None:
    wanted = 0.5 - 0.25 * np.cos(np.linspace(0, 2 * np.pi, 8, endpoint=False))
    np.testing.assert_allclose(core.hamming_window(8, True, 0.5, 0.25, dtype=core.float64).numpy(), wanted)
    assert core.kaiser_window(5, False, beta=0.0).tolist() == [1.0] * 5
