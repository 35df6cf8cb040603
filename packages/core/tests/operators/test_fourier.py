"""Short-time Fourier transforms against their definition, and their inverses. Generated tests cover plain transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight_core as core

SIGNAL = np.random.default_rng(5).normal(size=(2, 50))
WINDOW = np.hanning(10)[1:-1]  # without the zeros at the ends


def spectra(x: np.ndarray, n_fft: int, hop: int, window: np.ndarray, mode: str | None) -> np.ndarray:
    """Return the transformed windows of one signal: (frequency, time)."""
    if mode is not None:
        x = np.pad(x, n_fft // 2, mode=mode)
    left = (n_fft - len(window)) // 2
    full = np.pad(window, (left, n_fft - len(window) - left))
    frames = [x[at : at + n_fft] * full for at in range(0, len(x) - n_fft + 1, hop)]
    return np.fft.rfft(frames, axis=-1).T


@pytest.mark.parametrize("mode", ["reflect", "constant", "edge", "wrap", None])
def test_stft(mode: str | None) -> None:
    names = {"edge": "replicate", "wrap": "circular", None: "reflect"}
    got = core.stft(
        core.tensor(SIGNAL),
        12,
        5,
        8,
        core.tensor(WINDOW),
        center=mode is not None,
        pad_mode=names.get(mode, mode),
        return_complex=True,
    )
    wanted = np.stack([spectra(x, 12, 5, WINDOW, mode) for x in SIGNAL])
    np.testing.assert_allclose(got.numpy(), wanted, atol=1e-12)
    pairs = core.stft(core.tensor(SIGNAL[0]), 12, return_complex=False)
    assert pairs.shape == (7, 17, 2)


@pytest.mark.parametrize("options", [{}, {"normalized": True}, {"onesided": False}, {"hop_length": 2}])
def test_istft_gives_the_signal_back(options: dict[str, Any]) -> None:
    signal = core.tensor(SIGNAL)
    window = core.tensor(WINDOW)
    there = core.stft(signal, 8, window=window, return_complex=True, **options)
    back = core.istft(there, 8, window=window, length=50, **options)
    # The last samples are in no complete window, except if the last hop ends there.
    n = 50 - 50 % options.get("hop_length", 2)
    np.testing.assert_allclose(back.numpy()[:, : n - 8], SIGNAL[:, : n - 8], atol=1e-12)


def test_istft_refuses_windows_with_gaps() -> None:
    z = core.ones(5, 4, dtype=core.complex128)
    with pytest.raises(RuntimeError, match="zero at some samples"):
        core.istft(z, 8, 8, window=core.zeros(8, dtype=core.float64))


def test_the_same_bits_for_any_number_of_threads() -> None:
    x = core.rand(40, 3000, dtype=core.float64)
    before = core.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            core.set_num_threads(threads)
            results.append(core.fft.fft2(x).numpy().tobytes())
    finally:
        core.set_num_threads(before)
    assert len(set(results)) == 1


def test_istft_of_a_real_signal_needs_a_real_window() -> None:
    spectrum, window = core.ones(5, 7, dtype=core.complex64), core.ones(8, dtype=core.complex64)
    with pytest.raises(RuntimeError, match=r"istft\(window\): must be real"):
        core.istft(spectrum, 8, window=window)
    both = core.ones(8, 7, dtype=core.complex64)
    assert core.istft(both, 8, window=window, onesided=False, return_complex=True).is_complex()


def test_istft_takes_its_sides_from_the_input() -> None:
    """Without `onesided`, the number of frequencies determines whether a spectrum is two-sided. `length` is respected."""
    whole = core.stft(
        core.tensor(SIGNAL[0]),
        8,
        onesided=False,
        return_complex=True,
        window=core.ones(8, dtype=core.float64),
    )
    half = core.stft(core.tensor(SIGNAL[0]), 8, return_complex=True, window=core.ones(8, dtype=core.float64))
    window = core.ones(8, dtype=core.float64)
    np.testing.assert_allclose(
        core.istft(whole, 8, window=window), core.istft(half, 8, window=window), atol=1e-12
    )
    assert core.istft(half[:, :2], 8, window=window, length=30).shape == (30,)
    with pytest.raises(RuntimeError, match="must be positive"):
        core.istft(half, 8, window=window, length=0)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 16, 30, 101, 1024])
@pytest.mark.parametrize("count", [1, 2, 5, 8, 11, 16, 19])
def test_sequences_side_by_side(n: int, count: int, wide: bool) -> None:
    """Sequences are transformed in the lanes of vectors: any number of them, and in any layout."""
    random = np.random.default_rng(n)
    real, other = random.normal(size=(2, count, n)).astype("float64" if wide else "float32")
    tolerance = {"rtol": 0, "atol": (1e-14 if wide else 4e-7) * n}
    for transform in ("fft", "ifft", "rfft", "ihfft", "irfft", "hfft"):
        x = real if transform in ("rfft", "ihfft") else (real + 1j * other).astype(f"complex{64 << wide}")
        arguments = {"n": n} if transform in ("irfft", "hfft") else {}
        expected = getattr(np.fft, transform)(x.astype(np.result_type(x, "float64")), **arguments)
        ours, numbers = getattr(core.fft, transform), core.from_numpy(x)
        apart = core.zeros(count, 2 * n, dtype=numbers.dtype)[:, ::2].copy_(numbers)
        for given, dim in (
            (numbers, 1),
            (numbers.t().contiguous(), 0),
            (core.stack([numbers.t(), numbers.t()], 1), 0),
            (core.stack([numbers, numbers], 2), 1),
            (apart, 1),
        ):
            got = ours(given, dim=dim, **arguments)
            if given.dim() == 3:
                got = got.select(1 if dim == 0 else 2, 1)
            got = got.movedim(dim, 1) if got.dim() == 2 and dim == 0 else got
            np.testing.assert_allclose(got.numpy(), expected, **tolerance, err_msg=f"{transform} {dim}")
