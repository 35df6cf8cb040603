"""In-place operators on tensors and views."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
from autograd_samples import leaf, ones

import rushlight_core as core
from rushlight_autograd import grad, gradcheck, gradgradcheck


def both(function, *inputs) -> None:
    gradcheck(function, inputs, check_forward_ad=True)
    gradgradcheck(function, inputs)


def test_in_place_on_a_tensor() -> None:
    def f(x, y):
        z = x * 1
        z.mul_(y)
        z.add_(x)
        return z.exp_()

    both(f, leaf(3), leaf(3))


def test_in_place_on_a_view_reaches_the_base() -> None:
    def f(x, y):
        z = x * 1
        z.select(0, 0).mul_(y)
        z.select(1, 1).add_(y.select(0, 0))
        return z * z

    both(f, leaf(2, 3), leaf(3))


def test_in_place_on_the_base_reaches_a_view() -> None:
    def f(x, w):
        base = x * 1
        view = base.select(0, 1)
        base.mul_(w)
        return view * view

    both(f, leaf(2, 3), leaf(3))


def test_a_view_from_before_its_base_required_grad() -> None:
    def f(w):
        base = core.zeros(2, 3, dtype=core.float64)
        view = base.select(0, 1)
        base.copy_(w)
        return view * view

    both(f, leaf(2, 3))


def test_a_view_of_a_view() -> None:
    def f(x, y):
        z = x * 1
        z.transpose(0, 1).select(0, 2).mul_(y)
        return z * z

    both(f, leaf(2, 3), leaf(2))


@pytest.mark.parametrize(
    "name", ["exp_", "expm1_", "sigmoid_", "tanh_", "tan_", "sqrt_", "rsqrt_", "reciprocal_"]
)
@pytest.mark.parametrize("read", ["view", "base"])
def test_a_second_derivative_through_a_view_that_was_written(name: str, read: str) -> None:
    """A result that an in-place operator has saved is connected to the graph as a part of the base."""

    def written(x):
        base = x * 1
        view = base[1:]
        getattr(view, name)()
        return (view if read == "view" else base).exp().sum()

    def copied(x):
        made = getattr(core, name[:-1])(x[1:])
        return (made if read == "view" else core.cat([x[:1], made])).exp().sum()

    found = []
    for f in (written, copied):
        x = core.tensor([0.5, 0.25, 0.75], dtype=core.float64, requires_grad=True)
        (first,) = grad(f(x), [x], create_graph=True)
        (second,) = grad((first * first).sum(), [x], create_graph=True)
        (third,) = grad(second.sum(), [x])
        found.append((first.detach(), second.detach(), third))
    assert all(core.allclose(a, b) for a, b in zip(*found, strict=True))


def test_a_window_that_overlaps_itself() -> None:
    def f(x):
        base = x * 1
        view = base.as_strided((3, 2), (1, 1))
        base.mul_(2.0)
        return view * view

    both(f, leaf(4))


def test_another_geometry_in_place() -> None:
    def f(x):
        y = x * 1
        y.as_strided_((2, 2), (2, 1), 1)
        return y * y

    both(f, leaf(6))

    def g(x):
        base = x * 1
        view = base[1:]
        view.as_strided_((2,), (2,), 1)
        view.mul_(3.0)
        return base * base

    both(g, leaf(6))
    with pytest.raises(RuntimeError, match="leaf"):
        leaf(6).as_strided_((2,), (1,))


def test_a_tensor_leaves_its_graph() -> None:
    x = leaf(3)
    y = x * 2
    z = y * y
    assert y.detach_() is y
    assert y.grad_fn is None
    assert not y.requires_grad
    z.backward(ones(x))
    assert core.allclose(x.grad, 8 * x)
    assert not (y * 2).requires_grad
    y.requires_grad_()
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match="view"):
        (x * 2)[:1].detach_()


@pytest.mark.parametrize("function", [lambda y: y * y, lambda y: y**3, core.std, core.sin], ids=str)
def test_gradients_of_gradients_refuse_tensors_that_left_the_graph(function: Any) -> None:
    x = leaf(3)
    y = x * 2
    z = function(y).sum()
    y.detach_()
    (found,) = grad(z, x, retain_graph=True)
    (wanted,) = grad(function(x * 2).sum(), x)
    assert core.equal(found, wanted)
    with pytest.raises(RuntimeError, match="was detached in place after it was saved"):
        grad(z, x, create_graph=True)


@pytest.mark.parametrize("name", ["selu_", "celu_", "relu6_", "rrelu_", "polygamma_", "clamp_"])
def test_composites_in_place_keep_what_they_read(name: str) -> None:
    """The operators that they call save the value of the tensor before the write."""
    more = {"polygamma_": (1,), "clamp_": (leaf(3), 5.0), "rrelu_": (0.2, 0.2)}.get(name, ())

    def f(x):
        y = x * 1
        function = getattr(y, name, None) or (lambda *args: getattr(core, name)(y, *args))
        function(*more)
        return y

    both(f, leaf(3))


def test_what_is_written_to_integers_has_no_gradient() -> None:
    x = leaf(2)
    y = core.zeros(2, dtype=core.int64).copy_(x)
    assert not y.requires_grad
    z = core.zeros(2, dtype=core.int64).fill_(x[0])
    assert not z.requires_grad


def test_the_error_names_both_lines() -> None:
    x = leaf(3)
    y = x * 2
    saved = _line() + 1
    z = y * y
    changed = _line() + 1
    y.add_(1)
    with pytest.raises(RuntimeError) as caught:
        z.backward(ones(x))
    text = str(caught.value)
    assert f"saved:   version 0 at {__file__}:{saved}\n" in text
    assert f"changed: version 1, last by add at {__file__}:{changed}\n" in text


def test_a_write_that_no_line_made_is_still_told() -> None:
    x = leaf(3)
    y = x * 1
    z = y * y
    thread = threading.Thread(target=y.detach().zero_)  # zero_ is called by a line of the standard library
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match=r"changed: version 1, last by zero_ at .*threading\.py:"):
        z.backward(ones(x))


def _line() -> int:
    return sys._getframe(1).f_lineno


def test_a_view_made_without_gradients_cannot_record() -> None:
    x = leaf(3)
    y = x * 1
    with core.no_grad():
        view = y.select(0, 0)
    with pytest.raises(RuntimeError, match="no_grad"):
        view.mul_(x.select(0, 1))


def test_memory_of_what_is_recorded_is_not_exchanged() -> None:
    x = leaf(3)
    y = x * 2
    for exchange in (
        lambda: y.resize_(4),
        lambda: y.set_(core.zeros(3, dtype=y.dtype)),
        lambda: core.zeros(2).double().set_(y),
    ):
        with pytest.raises(RuntimeError, match="requires grad"):
            exchange()
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


# --- views taken in place ---

GEOMETRIES = [
    ("t_", (), (2, 3)),
    ("transpose_", (0, 2), (2, 3, 4)),
    ("swapaxes_", (0, 1), (2, 3)),
    ("squeeze_", (), (2, 1, 3)),
    ("squeeze_", (1,), (2, 1, 3)),
    ("unsqueeze_", (1,), (2, 3)),
    ("as_strided_", ((2, 2), (1, 2), 1), (2, 3)),
]


@pytest.mark.parametrize(("name", "args", "shape"), GEOMETRIES, ids=lambda v: str(v))
@pytest.mark.parametrize("written", ["view", "base", "base before", "nothing"])
def test_a_view_takes_another_geometry_in_place(name: str, args: tuple, shape: tuple, written: str) -> None:
    """The view derives the history of its base with the new geometry, after writes to the view or to the base."""
    w = leaf(*shape)
    out_of_place = name.removesuffix("_")

    def f(x, w):
        base = x * 1
        view = base[...]
        if written == "base before":
            base.mul_(w)
        getattr(view, name)(*args)
        if written == "view":
            view.mul_(getattr(w, out_of_place)(*args))
        elif written == "base":
            base.mul_(w)
        return view * 3, base * base

    both(f, leaf(*shape), w)


def test_a_transposed_view_is_written() -> None:
    x, w = leaf(2, 3), leaf(3, 2)
    c = x.clone()
    c[:].t_().mul_(w)
    c.backward(ones(c))
    assert core.equal(x.grad, w.detach().t())


# --- in-place operators whose results have no derivative ---


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("eq_", (1.0,)),
        ("lt_", (1.0,)),
        ("logical_and_", (ones(core.zeros(3)),)),
        ("logical_not_", ()),
        ("fill_", (2.0,)),
        ("zero_", ()),
        ("copy_", (ones(core.zeros(3)),)),
        ("uniform_", ()),
        ("geometric_", (0.5,)),
        ("cauchy_", ()),
        ("log_normal_", ()),
    ],
)
@pytest.mark.parametrize("on_view", [False, True])
def test_what_is_overwritten_has_a_gradient_of_zero(name: str, args: tuple, on_view: bool) -> None:
    x = leaf(3)
    y = x * 2
    getattr(y[:2] if on_view else y, name)(
        *(a[:2] if on_view and isinstance(a, core.Tensor) else a for a in args)
    )
    assert y.requires_grad
    y.backward(ones(y))
    assert x.grad.tolist() == [0, 0, 2 if on_view else 0]


def test_truth_values_are_not_written_to_a_leaf() -> None:
    with pytest.raises(RuntimeError, match="leaf"):
        leaf(3).eq_(1)


# --- `.data` ---


def test_data_has_a_version_of_its_own() -> None:
    x = core.ones(3)
    data = x.data
    data.add_(1)
    data[0].add_(1)
    assert (x._version, data._version, data[1:]._version) == (0, 2, 2)
    x.add_(1)
    x.detach().add_(1)
    assert (x._version, data._version) == (2, 2)
    assert x.tolist() == [5, 4, 4]
    x.data = core.zeros(2)
    assert x._version == 2
    x.add_(1)
    assert x._version == 3


def test_writes_through_data_are_not_seen_by_what_was_saved() -> None:
    x = leaf(3)
    y = x * x
    x.data.mul_(2)
    y.backward(ones(x))
    assert core.equal(x.grad, 2 * x.detach())  # with the new values, as in PyTorch
    y = x * 1
    z = y * y
    y.data.detach().add_(1)
    z.backward(ones(x))
    z = y * y
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="changed in place"):
        z.backward(ones(x))


RESULTS = {
    "relu6": lambda x: core.relu6(x + 3).div_(6),
    "exp": lambda x: x.exp().mul_(x),
    "a part": lambda x: (y := x.sigmoid(), y[1:].mul_(3))[0],
    "a view": lambda x: x.tanh().view(-1).pow_(2),
    "several writes": lambda x: x.exp().add_(1).mul_(2),
    "softmax": lambda x: x.softmax(0).mul_(x),
}


@pytest.mark.parametrize("name", RESULTS)
def test_saved_results_may_be_written(name: str) -> None:
    both(RESULTS[name], leaf(3))


def test_a_saved_result_that_was_written_without_recording_is_noticed() -> None:
    y = leaf(3).exp()
    with core.no_grad():
        y.zero_()
    with pytest.raises(RuntimeError, match="was changed in place after it was saved"):
        y.sum().backward()
