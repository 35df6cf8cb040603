"""Recurrent layers on the plug-in, compared with the CPU."""

from __future__ import annotations

import pytest

import rushlight as torch

pytestmark = pytest.mark.usefixtures("driver")

TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-6, "float64": 1e-13}


def values(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    n = torch.Size(shape).numel()
    return ((torch.arange(n) * 37 % 101 - 50) / 40).reshape(shape).to(dtype)


# A layer of an LSTM is one operator if the sequences have 32 elements or more.
@pytest.mark.parametrize("time", [6, 13])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False}])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_layers_and_their_gradients(kind, options, dtype, time):
    compare_layers(kind, 5, 4, options, dtype, time)


@pytest.mark.parametrize(("inputs", "hidden"), [(1, 1), (1, 4), (5, 1)])
@pytest.mark.parametrize("time", [6, 13])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_layers_with_one_feature(kind, time, inputs, hidden):
    """Their products have matrices of one row or column."""
    compare_layers(kind, inputs, hidden, {"bidirectional": True}, "float32", time)


def compare_layers(kind, inputs, hidden, options, dtype, time):
    dtype_ = getattr(torch, dtype)
    seen = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(3)
        layer = getattr(torch.nn, kind)(inputs, hidden, **options).to(dtype_).to(device)
        x = values(dtype_, time, 3, inputs).to(device).clone().requires_grad_()
        y, state = layer(x)
        states = state if isinstance(state, tuple) else (state,)
        loss = (y * values(dtype_, *y.shape).to(device)).sum()
        for s in states:
            loss = loss + (s * s).sum()
        loss.backward()
        assert y.device.type == device
        seen.append(
            [y.detach(), *(s.detach() for s in states), x.grad, *(p.grad for p in layer.parameters())]
        )
    for here, there in zip(*seen, strict=True):
        scale = max(1.0, float(here.double().abs().max()))
        torch.testing.assert_close(there.cpu(), here, rtol=0, atol=TOLERANCE[dtype] * scale)


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell"])
def test_states_of_any_strides(kind):
    cell = getattr(torch.nn, kind)(5, 4)
    x, h = values(torch.float32, 3, 5), values(torch.float32, 4, 3).t()
    state = (h, h * 2) if kind == "LSTMCell" else h
    expected = cell(x, state)
    there = cell.to("cuda")(x.cuda(), tuple(s.cuda() for s in state) if kind == "LSTMCell" else h.cuda())
    pairs = zip(there, expected, strict=True) if kind == "LSTMCell" else [(there, expected)]
    for found, wanted in pairs:
        torch.testing.assert_close(found.cpu(), wanted)
    nothing = cell(x.cuda()[:0])
    assert (nothing[0] if kind == "LSTMCell" else nothing).shape == (0, 4)
