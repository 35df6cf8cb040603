"""Fourier transforms: powers of two, products of small factors, primes, and several dimensions; the peer calls MKL."""

from __future__ import annotations

from collections.abc import Iterator

from . import Row

# The peer calls a library that its vendor has tuned for decades, so the target is to be close to it.
TARGET = 2.0


def rows() -> Iterator[Row]:
    real = "F = torch.fft; x = torch.tensor(data{shape})"
    complex_ = "F = torch.fft; x = torch.tensor(data{shape} + 1j * data(*{shape}, seed=1))"
    for name, statement, setup, shape in (
        ("fft", "F.fft(x)", complex_, (1024,)),
        ("fft", "F.fft(x)", complex_, (1 << 20,)),
        ("fft", "F.fft(x)", complex_, (256, 1024)),
        ("fft", "F.fft(x)", complex_, (256, 1000)),
        ("fft", "F.fft(x)", complex_, (256, 1009)),
        ("fft dim 0", "F.fft(x, dim=0)", complex_, (1024, 256)),
        ("rfft", "F.rfft(x)", real, (256, 1024)),
        ("irfft", "F.irfft(x)", complex_, (256, 513)),
        ("fft2", "F.fft2(x)", complex_, (16, 128, 128)),
        ("rfft2", "F.rfft2(x)", real, (16, 128, 128)),
        ("stft", "torch.stft(x, 512, 128, window=w, return_complex=True)", real, (4, 160000)),
    ):
        how = setup.format(shape=shape) + ("; w = torch.hann_window(512)" if name == "stft" else "")
        label = "x".join(map(str, shape))
        yield Row(
            f"{name} {label}",
            statement,
            how,
            target=TARGET,
            rtol=1e-3,
            atol=1e-2 if shape[-1] > 2000 else 1e-3,
            group="fft",
        )
