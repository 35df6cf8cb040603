"""Gradients of batch normalisation and the activation after it, which one operator computes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.profiler import profile

MASKED = "_masked_batch_norm_backward"
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "relu_": lambda: nn.ReLU(inplace=True),
    "relu6": nn.ReLU6,
    "hardtanh_": lambda: nn.Hardtanh(-0.5, 0.3, inplace=True),
}


class Run:
    """A forward pass of batch normalisation and an activation. `watch` is called with the tensor between them."""

    def __init__(
        self,
        activation: nn.Module,
        shape: tuple[int, ...] = (4, 5, 3, 3),
        dtype: torch.dtype = torch.float32,
        training: bool = True,
        watch: Callable[[Tensor], object] = lambda y: None,
    ) -> None:
        torch.manual_seed(0)
        self.x = torch.randn(shape, dtype=dtype, requires_grad=True)
        self.weight = torch.randn(5, dtype=dtype, requires_grad=True)
        self.bias = torch.randn(5, dtype=dtype, requires_grad=True)
        mean, var = torch.zeros(5, dtype=dtype), torch.ones(5, dtype=dtype)
        y = nn.functional.batch_norm(self.x, mean, var, self.weight, self.bias, training)
        self.kept = watch(y)
        self.loss = (activation(y) * torch.randn(shape, dtype=dtype)).sum()

    @property
    def leaves(self) -> list[Tensor]:
        return [self.x, self.weight, self.bias]

    def backward(self, **options: bool) -> set[str]:
        """Run a backward pass, and return the names of its operators."""
        with profile() as recorded:
            self.loss.backward(**options)
        return {event.name for event in recorded.events()}

    @property
    def grads(self) -> list[Tensor]:
        return [leaf.grad for leaf in self.leaves if leaf.grad is not None]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(4, 5, 3, 3), (3, 5, 70), (7, 5)], ids=str)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_same_bits_as_two_operators(
    name: str, shape: tuple[int, ...], dtype: torch.dtype, training: bool
) -> None:
    one = Run(ACTIVATIONS[name](), shape, dtype, training)
    assert MASKED in one.backward()
    two = Run(ACTIVATIONS[name](), shape, dtype, training, lambda y: y.register_hook(lambda grad: None))
    assert MASKED not in two.backward()
    assert len(one.grads) == len(two.grads) == 3
    for a, b in zip(one.grads, two.grads, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 0.0, 6.0])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_at_the_ends(name: str, value: float) -> None:
    def spoil(y: Tensor) -> None:
        y.detach().view(-1)[3] = value

    one = Run(ACTIVATIONS[name](), watch=spoil)
    assert MASKED in one.backward()
    two = Run(ACTIVATIONS[name](), watch=lambda y: (spoil(y), y.retain_grad()))
    assert MASKED not in two.backward()
    assert torch.equal(one.x.grad, two.x.grad)


@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 3)], ids=str)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_evaluation_does_not_read_the_input(value: float, shape: tuple[int, ...]) -> None:
    x = torch.ones(shape)
    x.view(-1)[1] = value
    x.requires_grad_()
    y = nn.functional.batch_norm(x, torch.zeros(2), torch.ones(2), eps=0.0)
    torch.relu(y).sum().backward()
    assert torch.equal(x.grad, torch.ones(shape))


@pytest.mark.parametrize(
    "watch",
    [
        lambda y: y.retain_grad(),
        lambda y: y.register_hook(lambda grad: 2 * grad),
        lambda y: y.grad_fn.register_hook(lambda inputs, outputs: None),
        lambda y: y.grad_fn.register_prehook(lambda outputs: None),
    ],
    ids=["retain_grad", "register_hook", "post hook", "pre hook"],
)
def test_hooks_see_the_masked_gradient(watch: Callable[[Tensor], object]) -> None:
    assert MASKED not in Run(nn.ReLU(), watch=watch).backward()


def test_gradient_between_the_two() -> None:
    run = Run(nn.ReLU(), watch=lambda y: y)
    (between,) = torch.autograd.grad(run.loss, [run.kept], retain_graph=True)
    assert bool((between[run.kept <= 0] == 0).all())
    assert bool((between != 0).any())
    both = torch.autograd.grad(run.loss, [run.x, run.kept], retain_graph=True)
    assert torch.equal(both[1], between)
    assert torch.equal(both[0], torch.autograd.grad(run.loss, [run.x])[0])


def test_other_users_of_the_normalised_tensor() -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 5, 3, dtype=torch.float64, requires_grad=True)

    def f(x: Tensor) -> Tensor:
        y = nn.functional.batch_norm(x, None, None, training=True)
        return torch.relu(y) + y.sin()

    assert torch.autograd.gradcheck(f, (x,))


def test_second_derivatives() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 2, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(
        lambda x: nn.functional.relu6(nn.functional.batch_norm(x, None, None, training=True)), (x,)
    )


def test_graph_is_used_up_once() -> None:
    run = Run(nn.ReLU())
    run.backward(retain_graph=True)
    first = run.x.grad.clone()
    run.x.grad = None
    run.backward()
    assert torch.equal(run.x.grad, first)
    with pytest.raises(RuntimeError, match="used already"):
        run.backward()


def test_changed_activation_is_noticed() -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 5, requires_grad=True)
    z = torch.relu(nn.functional.batch_norm(x, None, None, training=True))
    loss = z.sum()
    z.data.add_(0)
    z.detach().add_(1)
    with pytest.raises(RuntimeError, match=r"modified|changed"):
        loss.backward()


def test_anomaly_mode_runs_every_node() -> None:
    with torch.autograd.detect_anomaly():
        assert MASKED not in Run(nn.ReLU()).backward()
