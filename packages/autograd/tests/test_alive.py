"""why_alive, and the warning about graphs that grow."""

from __future__ import annotations

import threading
import warnings

import pytest
from autograd_samples import leaf, ones

import rushlight_core as core
from rushlight_autograd import Function, why_alive

KEPT: list[core.Tensor] = []


class Holder:
    def __init__(self, tensor: core.Tensor) -> None:
        self.weights = {"first": [tensor]}


class Slotted:
    __slots__ = ("tensor",)


class TestWhyAlive:
    def test_paths_of_references(self) -> None:
        t = core.ones(3)
        model = Holder(t)
        KEPT.append(t)
        slotted = Slotted()
        slotted.tensor = t

        def closure() -> core.Tensor:
            return t

        def generator():
            mine = t
            yield mine

        suspended = generator()
        next(suspended)
        found = why_alive(t).references
        KEPT.clear()
        here = "of TestWhyAlive.test_paths_of_references"
        for expected in (
            f"variable t {here}",
            f"variable model.weights['first'][0] {here}",
            f"variable KEPT[0] of module {__name__}",
            f"variable slotted.tensor {here}",
            "in the closure of TestWhyAlive.test_paths_of_references.<locals>.closure",
            "variable mine of the suspended TestWhyAlive.test_paths_of_references.<locals>.generator",
        ):
            assert any(expected in line for line in found), (expected, found)
        assert any(f"({__file__}:" in line for line in found)
        assert closure() is t
        assert model
        assert slotted
        assert suspended

    def test_variables_of_other_threads(self) -> None:
        t = core.ones(3)
        ready, done = threading.Event(), threading.Event()

        def run(theirs: core.Tensor) -> None:
            ready.set()
            done.wait()

        thread = threading.Thread(target=run, args=(t,))
        thread.start()
        ready.wait()
        try:
            assert any("variable theirs of" in line for line in why_alive(t).references)
        finally:
            done.set()
            thread.join()

    def test_edges_of_graphs(self) -> None:
        x = leaf(3)
        factor = core.ones(3, dtype=core.float64)
        y = (x * factor).exp()
        found = why_alive(factor).graph
        assert len(found) == 1
        assert found[0].startswith(f"MulBackward0 at {__file__}:")
        assert "saved it as 'other', in the graph of variable y of" in found[0]
        assert any("it is a leaf of the graph of variable y" in line for line in why_alive(x).graph)
        assert "ExpBackward0" in repr(why_alive(y))
        y.backward(ones(x))
        assert not why_alive(factor).graph

    def test_other_tensors(self) -> None:
        x = leaf(3)
        (x * 2).sum().backward()
        grad, view, twin = x.grad, x.select(0, 0), x.detach()
        assert any(line.startswith("it is the grad of variable x") for line in why_alive(grad).graph)
        found = why_alive(x).graph
        assert any(line.startswith("a view of it: variable view") for line in found)
        assert any(line.startswith("another tensor that shares its memory: variable twin") for line in found)
        assert view is not None
        assert twin is not None

    def test_the_saved_tensors_of_a_function(self) -> None:
        class Keep(Function):
            @staticmethod
            def forward(ctx, x, t):
                ctx.save_for_backward(t)
                return x * 1

            @staticmethod
            def backward(ctx, g):
                return g, None

        t = core.ones(3, dtype=core.float64)
        y = Keep.apply(leaf(3), t)
        assert any("KeepBackward" in line and "saved it" in line for line in why_alive(t).graph)
        assert y.requires_grad

    def test_the_text(self) -> None:
        t = core.ones(2, 3)
        text = repr(why_alive(t))
        assert text.startswith("Tensor of shape (2, 3), float32, 24 bytes, is kept alive\n  by Python:\n")
        assert text.endswith("  by graphs and other tensors:\n    nothing")

    def test_no_tensor(self) -> None:
        with pytest.raises(TypeError, match="must be a Tensor, not int"):
            why_alive(3)


def growth(step, iterations: int = 200) -> list[warnings.WarningMessage]:
    """Return the warnings about growth that iterations of `step` issue."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(iterations):
            step(i)
    return [w for w in caught if "grows with every iteration" in str(w.message)]


def line_of(text: str) -> int:
    with open(__file__) as source:
        return next(i for i, line in enumerate(source, 1) if line.rstrip().endswith(text))


class TestGrowth:
    def test_a_sum_of_losses_after_backward(self) -> None:
        x, totals = leaf(3), [0]

        def step(_: int) -> None:
            loss = (x * x).sum()
            loss.backward()
            totals[0] += loss  # the mistake

        (warning,) = growth(step)
        assert (warning.filename, warning.lineno) == (__file__, line_of("# the mistake"))
        assert "64 results" in str(warning.message)
        assert "hint: accumulate loss.item()" in str(warning.message)

    def test_a_sum_of_losses_before_backward(self) -> None:
        x, totals = leaf(3), [0]

        def step(_: int) -> None:
            loss = (x * x).sum()
            totals[0] = totals[0] + loss  # the mistake before
            loss.backward()

        (warning,) = growth(step)
        assert (warning.filename, warning.lineno) == (__file__, line_of("# the mistake before"))

    def test_a_list_of_what_was_computed_from_losses(self) -> None:
        x, kept = leaf(3), []

        def step(_: int) -> None:
            loss = (x * x).sum()
            loss.backward()
            kept.append(loss * 2)

        assert len(growth(step)) == 1

    def test_as_an_error(self) -> None:
        x, totals = leaf(3), [0]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="grows with every iteration"):
                for _ in range(100):
                    loss = (x * x).sum()
                    loss.backward()
                    totals[0] += loss

    @pytest.mark.parametrize("kept", ["item", "detach", "losses", "nothing"])
    def test_what_is_no_mistake(self, kept: str) -> None:
        x, totals, losses = leaf(3), [0], []

        def step(_: int) -> None:
            loss = (x * x).sum()
            loss.backward()
            if kept == "losses":
                losses.append(loss)
            elif kept == "nothing":
                assert (loss * 2 + loss).requires_grad
            else:
                totals[0] += getattr(loss, kept)()

        assert not growth(step)

    def test_a_recurrent_network(self) -> None:
        """One line extends a graph many times in each of many iterations, which is not growth."""
        w = leaf(3)

        def step(_: int) -> None:
            h, total = core.zeros(3, dtype=core.float64), 0
            for _ in range(100):
                h = (h * w + 1).tanh()
                total = total + h.sum()
            total.backward()

        assert not growth(step, 10)

    def test_a_state_that_is_carried_on(self) -> None:
        w = leaf(3)
        state = [core.zeros(3, dtype=core.float64)]

        def step(_: int) -> None:
            h = state[0]
            for _ in range(5):
                h = (h * w + 1).tanh()
            h.sum().backward()
            state[0] = h.detach()

        assert not growth(step)

    def test_several_losses_of_one_graph(self) -> None:
        """Run a pass with retain_graph for each step of a sequence, and use the losses again."""
        w = leaf(3)

        def step(_: int) -> None:
            h, losses = core.zeros(3, dtype=core.float64), []
            for _ in range(5):
                h = (h * w + 1).tanh()
                losses.append(h.sum())
            for loss in losses:
                loss.backward(retain_graph=True)
            sum(losses).backward()

        assert not growth(step, 100)

    def test_two_passes_whose_losses_are_shown_together(self) -> None:
        x = leaf(3)

        def step(_: int) -> None:
            real, fake = (x * x).sum(), (x * 2).sum()
            real.backward()
            fake.backward()
            assert (real + fake).requires_grad

        assert not growth(step)
