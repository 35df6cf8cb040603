"""Fourier transforms on the plug-in, compared with the CPU."""

from __future__ import annotations

import pytest

import rushlight as torch

pytestmark = pytest.mark.usefixtures("driver")

# Powers of two, products of small factors, and lengths with a large prime factor.
LENGTHS = [1, 2, 3, 4, 7, 8, 12, 13, 16, 17, 30, 34, 64, 97, 100, 143, 210, 512]
TOLERANCE = {torch.complex64: 3e-5, torch.complex128: 3e-13, torch.float32: 3e-5, torch.float64: 3e-13}


def values(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    torch.manual_seed(3)
    return torch.randn(*shape, dtype=dtype)


def same(call, x: torch.Tensor) -> None:
    device, host = call(x.cuda()), call(x)
    assert device.device.type == "cuda"
    assert device.dtype == host.dtype
    size = max(float(host.abs().max()), 1) if host.numel() else 1
    torch.testing.assert_close(device.cpu(), host, rtol=0, atol=TOLERANCE[x.dtype] * size)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("double", [False, True])
def test_lengths(double, norm, n):
    x = values(torch.complex128 if double else torch.complex64, 3, n)
    real = values(torch.float64 if double else torch.float32, 3, n)
    for call in (torch.fft.fft, torch.fft.ifft):
        same(lambda t, call=call: call(t, norm=norm), x)
        same(lambda t, call=call: call(t, dim=0, norm=norm), x.t())
    same(lambda t: torch.fft.irfft(t, 2 * n - 1, norm=norm), x)
    same(lambda t: torch.fft.hfft(t, 2 * n, norm=norm), x)
    for call in (torch.fft.rfft, torch.fft.ihfft):
        same(lambda t, call=call: call(t, norm=norm), real)
        same(lambda t, call=call: call(t, dim=0, norm=norm), real.t())


@pytest.mark.parametrize("dim", [(0,), (1, 2), (2, 0), (0, 1, 2)])
def test_several_dimensions_of_any_strides(dim):
    x, real = values(torch.complex128, 6, 5, 8), values(torch.float64, 6, 5, 8)
    for place in (
        lambda t: t,
        lambda t: t.transpose(0, 2),
        lambda t: t[:, ::2],
        lambda t: t[:1].expand(4, 5, 8),
    ):
        same(lambda t, place=place: torch.fft.fftn(place(t), dim=dim), x)
        same(lambda t, place=place: torch.fft.ifftn(place(t), dim=dim), x)
        same(lambda t, place=place: torch.fft.rfftn(place(t), dim=dim), real)
        same(lambda t, place=place: torch.fft.irfftn(place(t), dim=dim), x)


def test_no_elements():
    same(lambda t: torch.fft.fft(t, dim=1), values(torch.complex64, 0, 4))
    same(lambda t: torch.fft.rfft(t, dim=1), values(torch.float32, 0, 4))
    same(lambda t: torch.fft.irfft(t, 6, dim=1), values(torch.complex64, 0, 4))


def test_gradients_of_spectrograms():
    seen = []
    for device in ("cpu", "cuda"):
        x = values(torch.float64, 2, 200).to(device).requires_grad_()
        window = torch.hann_window(36, dtype=torch.float64).to(device)
        spectrum = torch.stft(x, 36, 9, window=window, return_complex=True)
        back = torch.istft(spectrum * 2, 36, 9, window=window)
        (spectrum.abs().square().sum() + (back**3).sum()).backward()
        seen.append([spectrum.detach().cpu(), back.detach().cpu(), x.grad.cpu()])
    for here, there in zip(*seen, strict=True):
        torch.testing.assert_close(there, here, rtol=1e-9, atol=1e-9)
