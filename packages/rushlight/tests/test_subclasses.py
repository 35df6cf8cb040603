"""Subclasses of Tensor with gradients: results that keep the class, and the functions that `__torch_function__` gets."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch


class Plain(torch.Tensor):
    pass


class Logging(torch.Tensor):
    calls: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.filterwarnings("ignore:tensor.data")
def test_conversions_to_plain_tensors() -> None:
    x = torch.ones(2, requires_grad=True).as_subclass(Logging)
    copies = [torch.tensor(x), torch.asarray(x, requires_grad=False), torch.ones(1).new_tensor(x)]
    in_graph = [torch.as_tensor(x, dtype=torch.float64), torch.asarray(x, copy=True), torch.Tensor(x)]
    assert {type(t) for t in copies + in_graph} == {torch.Tensor}
    assert [t.requires_grad for t in copies + in_graph] == [False] * 3 + [True] * 3
    assert not Logging.calls
    leaf = torch.ones(2, requires_grad=True)
    (torch.Tensor(leaf) * 3).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [3.0, 3.0]


@pytest.fixture(autouse=True)
def _forget() -> None:
    Logging.calls.clear()


def leaf(kind: type) -> Any:
    return torch.ones(2, 3).as_subclass(kind).requires_grad_()


@pytest.mark.parametrize("kind", [Plain, Logging])
def test_grad_keeps_the_class(kind: type) -> None:
    x = leaf(kind)
    (grad,) = torch.autograd.grad((x * x).sum(), x)
    assert type(grad) is kind
    assert grad.tolist() == [[2.0] * 3] * 2
    (grad,) = torch.autograd.grad((x * x).sum(), [x], create_graph=True)
    assert type(torch.autograd.grad(grad.sum(), x)[0]) is kind
    assert type(torch.autograd.grad(x.sum(), x, allow_unused=True, materialize_grads=True)[0]) is kind


@pytest.mark.parametrize("kind", [Plain, Logging])
def test_the_attribute_grad_is_plain(kind: type) -> None:
    x = leaf(kind)
    (x * x).sum().backward()
    assert type(x.grad) is torch.Tensor
    torch.autograd.backward((x * x).sum())
    assert x.grad.tolist() == [[4.0] * 3] * 2


def test_a_class_sees_backward_and_hooks() -> None:
    x = leaf(Logging)
    y = x * 2
    Logging.calls.clear()
    y.retain_grad()
    y.register_hook(lambda grad: None)
    x.register_post_accumulate_grad_hook(lambda leaf: None)
    y.sum().backward()
    assert [func.__name__ for func in Logging.calls] == [
        "retain_grad", "register_hook", "register_post_accumulate_grad_hook", "sum", "backward",
    ]  # fmt: skip
    Logging.calls.clear()
    torch.autograd.grad(leaf(Logging).sum(), y, allow_unused=True)
    assert torch.autograd.grad in Logging.calls
    for name in ("grad_fn", "output_nr", "retains_grad"):
        Logging.calls.clear()
        getattr(y, name)
        assert Logging.calls == [getattr(torch.Tensor, name).__get__]


def test_parameters_of_modules_are_not_slowed_by_classes() -> None:
    layer = torch.nn.Linear(2, 2)
    assert type(layer.weight.data) is torch.Tensor
    assert type(torch.autograd.grad(layer(torch.ones(1, 2)).sum(), layer.weight)[0]) is torch.Tensor


def test_gradients_of_objects_that_are_no_tensors() -> None:
    class Named:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(func)
            return "answer"

    calls: list[Any] = []
    w: Any = Named()
    x = torch.ones(2, requires_grad=True)
    for outputs, inputs in ((w, w), ([w], [x]), (x.sum(), [x, w])):
        assert torch.autograd.grad(outputs, inputs) == "answer"
    torch.autograd.backward(w)
    torch.autograd.backward([x.sum(), w])
    torch.autograd.backward(x.sum(), inputs=w)
    assert calls == [torch.autograd.grad] * 3 + [torch.autograd.backward] * 3
    assert x.grad is None
    wrong: Any = 3
    with pytest.raises(TypeError, match=r"backward\(\): tensors must be Tensors or GradientEdges, not int"):
        torch.autograd.backward(wrong)
