"""FlopCounterMode, compared with hand-computed counts."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils import flop_counter
from rushlight.utils.flop_counter import FlopCounterMode, register_flop_formula


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
    # The gradient of a weight, or of an input that requires one, takes as many operations as the forward pass.
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
    assert not nn.Linear(2, 2)._hooked  # the hooks are removed after the block


@pytest.fixture
def product(monkeypatch: pytest.MonkeyPatch):
    """A custom operator that multiplies matrices, whose derivative is also a custom operator."""
    monkeypatch.setattr(flop_counter, "_formulas", {})

    @torch.library.custom_op("flops::product", mutates_args=())
    def product(a: torch.Tensor, b: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return a @ b * scale

    @torch.library.custom_op("flops::gradients", mutates_args=())
    def gradients(a: torch.Tensor, b: torch.Tensor, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return grad @ b.T, a.T @ grad

    product.register_autograd(
        lambda ctx, grad: (*gradients(*ctx.saved_tensors, grad), None),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs[:2]),
    )
    return product


def test_formulas_count_custom_operators(product) -> None:
    class Product(nn.Module):
        def forward(self, a, b):
            return product(a, b)

    a, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4, requires_grad=True)
    whole = counts(lambda: Product()(a, b).sum().backward())
    # Operations of a custom operator's derivative are not counted for a module.
    assert (whole["Global"], whole["Product"]) == ({"mm": 3 * 48}, {"mm": 48})

    @register_flop_formula(torch.ops.flops.product)
    def of_product(a_shape, b_shape, scale, out_shape=None):
        assert (tuple(a_shape), tuple(b_shape), tuple(out_shape), scale) == ((2, 3), (3, 4), (2, 4), 1.0)
        return 1000

    assert of_product((2, 3), (3, 4), 1.0, out_shape=(2, 4)) == 1000
    found = counts(lambda: Product()(a, b).sum().backward())
    assert found["Global"] == {"flops::product": 1000, "mm": 96}
    assert found["Product"] == {"flops::product": 1000}

    @register_flop_formula([torch.ops.flops.gradients], get_raw=True)
    def of_gradients(a, b, grad, out_val):
        assert [t.shape for t in out_val] == [a.shape, b.shape]
        return a.numel()

    found = counts(lambda: Product()(a, b).sum().backward())
    assert found["Global"] == {"flops::product": 1000, "flops::gradients": 6}
    with FlopCounterMode(
        display=False, custom_mapping={product: lambda a, b, scale, out_shape: 7}
    ) as counter:
        product(a, b)
    assert counter.get_flop_counts() == {"Global": {"flops::product": 7}}
    product(a, b)  # calls outside of the block are not counted
    assert counter.get_total_flops() == 7


def test_formulas_that_are_refused(product) -> None:
    register_flop_formula(product)(lambda a, b, scale, out_shape: 1)
    with pytest.raises(RuntimeError, match="duplicate registrations"):
        register_flop_formula(product)(lambda a, b, scale, out_shape: 2)
    for other in (torch.mm, torch.ops.aten.mm, "mm"):
        with pytest.raises(ValueError, match="must be a custom operator"):
            register_flop_formula(other)(len)
        with pytest.raises(ValueError, match="custom_mapping"):
            FlopCounterMode(custom_mapping={other: len})


def sums(counter: FlopCounterMode) -> dict:
    return {path: sum(of.values()) for path, of in counter.get_flop_counts().items()}


def test_counters_in_counters() -> None:
    model, x = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5)), torch.ones(2, 3)
    with FlopCounterMode(display=False) as outer:
        y = model(x).sum()
        with FlopCounterMode(display=False) as inner:
            y.backward()
            model[0](x)
        assert sums(inner) == {"Global": 48 + 160 + 48, "Linear": 48}
        with FlopCounterMode(display=False) as second:
            model[1](model[0](x))
        model(x)
    assert sums(inner) == {"Global": 48 + 160 + 48, "Linear": 48}
    assert sums(second) == {"Global": 128, "Linear": 128}
    assert sums(outer)["Global"] == 128 + 208 + 48 + 128 + 128
    assert sums(outer)["Sequential"] == 128 + 208 + 128
    with pytest.raises(RuntimeError, match="running already\nhint"), outer, outer:
        pass


def test_formulas_in_counters_in_counters() -> None:
    @torch.library.custom_op("test_flop_nested::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x @ x + x @ x

    x = torch.ones(2, 2)
    with FlopCounterMode(display=False, custom_mapping={twice: lambda x, out_shape=None: 5}) as outer:
        with FlopCounterMode(display=False) as inner:
            twice(x)
        twice(x)
    assert inner.get_flop_counts()["Global"] == {"mm": 32}
    assert list(outer.get_flop_counts()["Global"].values()) == [10]


def test_counters_in_profiles() -> None:
    model, x = nn.Linear(3, 4), torch.ones(2, 3)
    with torch.profiler.profile(record_shapes=True) as prof:
        model(x)
        with FlopCounterMode(display=False) as counter:
            model(x).sum().backward()
        model(x)
    assert sums(counter) == {"Global": 96, "Linear": 96}
    assert sum(event.name == "linear" for event in prof.events()) == 3
    with torch.profiler.profile(), pytest.raises(RuntimeError, match="must record shapes\nhint"):
        FlopCounterMode().__enter__()
    prof.start()
    with pytest.raises(RuntimeError, match="ended inside the block\nhint"), FlopCounterMode():
        prof.stop()
    assert sums(counter) == {"Global": 96, "Linear": 96}
    with FlopCounterMode(display=False) as counter:
        model(x)
    assert sums(counter) == {"Global": 48, "Linear": 48}
