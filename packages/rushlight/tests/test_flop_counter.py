"""FlopCounterMode, against counts made by hand."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils.flop_counter import FlopCounterMode


def counts(work) -> dict:
    with FlopCounterMode(display=False) as counter:
        work()
    assert counter.get_total_flops() == sum(counter.get_flop_counts()["Global"].values())
    return counter.get_flop_counts()


def test_modules_and_their_gradients() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 36, 10))
    forward = (
        2 * (2 * 8 * 36) * (3 * 9),
        2 * 2 * 288 * 10,
    )  # (2, 8, 6, 6) of kernels (3, 3, 3); (2, 288) times (288, 10)
    x = torch.randn(2, 3, 8, 8)
    found = counts(lambda: model(x))
    assert list(found) == ["Global", "Sequential", "Sequential.0", "Sequential.1", "Sequential.2"]
    assert [sum(of.values()) for of in found.values()] == [
        sum(forward),
        sum(forward),
        forward[0],
        0,
        forward[1],
    ]
    # The weights' gradients take as much, and those of inputs that are wanted.
    found = counts(lambda: model(x).sum().backward())
    assert [sum(of.values()) for of in found.values()] == [
        2 * forward[0] + 3 * forward[1], 2 * forward[0] + 3 * forward[1], 2 * forward[0], 0, 3 * forward[1],
    ]  # fmt: skip
    x.requires_grad_()
    assert sum(counts(lambda: model(x).sum().backward())["Sequential.0"].values()) == 3 * forward[0]


def test_transposed_convolutions_and_attention() -> None:
    x, weight = torch.randn(2, 3, 8, 8, requires_grad=True), torch.randn(3, 4, 3, 3, requires_grad=True)
    one = 2 * x.numel() * 4 * 9
    found = counts(lambda: nn.functional.conv_transpose2d(x, weight).sum().backward())
    assert found["Global"] == {"convolution": one, "convolution_backward": 2 * one}
    q = torch.randn(2, 4, 5, 8, requires_grad=True)
    product = 2 * (2 * 4 * 5) * 5 * 8
    found = counts(lambda: nn.functional.scaled_dot_product_attention(q, q, q).sum().backward())
    assert found["Global"] == {"_attention": 2 * product, "_attention_backward": 5 * product}


def test_what_is_not_counted() -> None:
    x = torch.randn(3, 3)
    assert counts(lambda: (x + x).sum())["Global"] == {}
    assert counts(lambda: x @ x)["Global"] == {"mm": 54}


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 1)))
    with FlopCounterMode(depth=2) as counter:
        model(torch.ones(1, 2))
    shown = capsys.readouterr().out
    assert shown.rstrip("\n") == counter.get_table()
    assert "Sequential.0 " in shown
    assert "Sequential.1.0" not in shown
    assert "Sequential.1.0" in counter.get_table(3)
    assert "100.00%" in shown


def test_a_module_that_raises_ends_its_count() -> None:
    class Broken(nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    model = nn.Sequential(nn.Linear(2, 2), Broken())
    with FlopCounterMode(display=False) as counter:
        with pytest.raises(ValueError, match="broken"):
            model(torch.ones(1, 2))
        torch.ones(2, 2) @ torch.ones(2, 2)
    assert counter.get_flop_counts()["Sequential"] == {"linear": 8}
    assert counter.get_total_flops() == 8 + 16
    assert not nn.Linear(2, 2)._hooked  # the hooks of the block are gone
    with pytest.raises(NotImplementedError, match="custom_mapping"):
        FlopCounterMode(custom_mapping={torch.mm: len})
