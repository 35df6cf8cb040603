"""signal.windows, compared with SciPy's windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal.windows as scipy_windows

import rushlight_core as core
from rushlight_core.signal import windows

ARGUMENTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # Our arguments, and the arguments of SciPy that differ.
    "bartlett": ({}, {}),
    "blackman": ({}, {}),
    "cosine": ({}, {}),
    "exponential": ({"tau": 2.5}, {"tau": 2.5}),
    "gaussian": ({"std": 1.5}, {"std": 1.5}),
    "general_cosine": ({"a": [0.46, 0.23, 0.31]}, {"a": [0.46, 0.23, 0.31]}),
    "general_hamming": ({"alpha": 0.6}, {"alpha": 0.6}),
    "hamming": ({}, {}),
    "hann": ({}, {}),
    "kaiser": ({"beta": 9.0}, {"beta": 9.0}),
    "nuttall": ({}, {}),
}


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("length", [0, 1, 2, 7, 32])
@pytest.mark.parametrize("sym", [True, False])
def test_values(name: str, length: int, sym: bool) -> None:
    ours, theirs = ARGUMENTS[name]
    wanted = getattr(scipy_windows, name)(length, sym=sym, **theirs)
    found = getattr(windows, name)(length, sym=sym, dtype=core.float64, **ours)
    assert found.shape == (length,)
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-12)


def test_all_are_tested() -> None:
    assert set(windows.__all__) == set(ARGUMENTS)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str) -> None:
    window, (given, _) = getattr(windows, name), ARGUMENTS[name]
    assert window(3, **given).dtype == core.float32
    grown = window(3, dtype=core.float64, requires_grad=True, **given)
    assert grown.requires_grad
    assert grown.is_leaf
    with pytest.raises(ValueError, match=rf"{name}\(M\): must not be negative"):
        window(-1, **given)
    with pytest.raises(ValueError, match=rf"{name}\(dtype\): must be float32 or float64, got torch.float16"):
        window(3, dtype=core.float16, **given)
    with pytest.raises(ValueError, match=rf"{name}\(layout\)"):
        window(3, layout=core.sparse_coo, **given)
    with pytest.raises(TypeError, match="integer"):
        window(3.5, **given)


def test_parameters() -> None:
    found = windows.exponential(6, center=0, tau=2.0, sym=False, dtype=core.float64)
    np.testing.assert_allclose(found.numpy(), np.exp(-np.arange(6) / 2))
    assert windows.exponential(1, center=2.0, tau=2.0, sym=False).item() == pytest.approx(np.exp(-1))
    assert windows.kaiser(5, beta=0.0).tolist() == [1.0] * 5
    assert windows.kaiser(5, beta=800.0)[2].item() == 1.0  # I0(800) overflows float64
    assert windows.general_cosine(3, a=iter([0.5])).tolist() == [0.5] * 3
    for call in (
        lambda: windows.exponential(5, center=1.0),
        lambda: windows.exponential(5, tau=0.0),
        lambda: windows.gaussian(5, std=-1.0),
        lambda: windows.kaiser(5, beta=-1.0),
        lambda: windows.general_cosine(5, a=[]),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError, match=r"general_cosine\(a\): needs numbers"):
        windows.general_cosine(5, a=3)  # type: ignore[arg-type]
