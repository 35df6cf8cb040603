"""Exceptions in callbacks, interrupts, and the end of the interpreter: errors, and the state of the graph."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback

import pytest
from autograd_samples import leaf, ones

import rushlight_core as core
from rushlight_autograd import Function, grad, graph, parallel_branches


class MineError(Exception):
    pass


def raises(*_: object) -> None:
    raise MineError("from here")


class Bad(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raises()


def in_a_tensor_hook(x):
    y = x * 1
    y.register_hook(raises)
    return y


def in_a_leaf_hook(x):
    x.register_hook(raises)
    return x * 1


def in_a_pre_hook(x):
    y = x * 1
    y.grad_fn.register_prehook(raises)
    return y


def in_a_post_hook(x):
    y = x * 1
    y.grad_fn.register_hook(raises)
    return y


def in_a_post_accumulate_hook(x):
    x.register_post_accumulate_grad_hook(raises)
    return x * 1


def in_a_multi_grad_hook(x):
    graph.register_multi_grad_hook([x], raises)
    return x * 1


def in_a_function(x):
    return Bad.apply(x)


def in_unpacking(x):
    with graph.saved_tensors_hooks(lambda t: t, raises):
        return x.exp()


POSITIONS = [
    in_a_tensor_hook,
    in_a_leaf_hook,
    in_a_pre_hook,
    in_a_post_hook,
    in_a_post_accumulate_hook,
    in_a_multi_grad_hook,
    in_a_function,
    in_unpacking,
]


@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize("position", POSITIONS, ids=lambda f: f.__name__)
def test_an_exception_keeps_type_and_traceback(position, branches: bool) -> None:
    x, other = leaf(2), leaf(2)
    kept = other * 3
    y = (position(x) + kept).exp()
    with parallel_branches(branches), pytest.raises(MineError, match="from here") as caught:
        y.backward(ones(x))
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "raises"
    # Nodes that ran are used up; the others can be used again.
    with pytest.raises(RuntimeError, match="used already"):
        y.backward(ones(x))
    if not branches:  # with branches, it may have run at the same time
        (g,) = grad(kept, other, ones(x))
        assert g.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("position", POSITIONS[:4], ids=lambda f: f.__name__)
def test_a_retained_graph_is_whole_after_an_exception(position) -> None:
    x = leaf(2)
    y = position(x).exp()
    handles: list = []
    x.grad = None
    with pytest.raises(MineError):
        y.backward(ones(x), retain_graph=True)
    with pytest.raises(MineError):
        y.backward(ones(x), retain_graph=True)
    assert x.grad is None
    assert not handles


def test_an_exception_while_recording() -> None:
    x = leaf(2)

    class Forward(Function):
        @staticmethod
        def forward(ctx, x):
            raises()

    class Setup(Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            raises()

    for function in (Forward, Setup):
        with pytest.raises(MineError):
            function.apply(x)
        assert core.is_grad_enabled()
    with pytest.raises(MineError), graph.saved_tensors_hooks(raises, raises):
        x.exp()
    x.exp().backward(ones(x))
    assert x.grad is not None


def test_ctrl_c_reaches_the_caller_while_helpers_work() -> None:
    """The signal handler raises on the thread that called backward, while helpers run two long branches."""
    x = leaf(3)
    a, b = x, x * 2
    for _ in range(100_000):
        a, b = a * 1, b * 1
    a.register_hook(lambda _: signal.raise_signal(signal.SIGUSR1))
    handler = signal.signal(signal.SIGUSR1, raises)
    try:
        with parallel_branches(), pytest.raises(MineError):
            (a + b).backward(ones(x), retain_graph=True)
    finally:
        signal.signal(signal.SIGUSR1, handler)


PROGRAM = """
import threading
import rushlight_core as core
import rushlight_autograd as autograd

class Slow(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1
    @staticmethod
    def backward(ctx, g):
        begun.set()
        return g * 1

begun = threading.Event()

def run():
    x = core.ones(8, requires_grad=True)
    y = x
    for _ in range(3000):
        y = Slow.apply(y)
    with autograd.parallel_branches({branches}):
        while True:
            y.sum().backward(retain_graph=True)

for _ in range(3):
    threading.Thread(target=run, daemon=True).start()
begun.wait()
"""


@pytest.mark.parametrize("branches", [False, True])
def test_the_interpreter_ends_in_the_middle_of_a_pass(branches: bool) -> None:
    for _ in range(2):
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(branches=branches)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ended.returncode == 0, ended.stderr
        assert "FATAL" not in ended.stderr
        assert "Traceback" not in ended.stderr


def test_graphs_that_live_until_the_end() -> None:
    program = textwrap.dedent("""
        import rushlight_core as core
        import rushlight_autograd as autograd

        class Mine(autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 1

        x = core.ones(3, requires_grad=True)
        x.cycle = Mine.apply(x)
        x.cycle.register_hook(lambda g: x)
        x.register_hook(lambda g: None)
        x.cycle.grad_fn.metadata["self"] = x.cycle
    """)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr


def test_hooks_of_a_thread_that_has_ended() -> None:
    x = leaf(2)
    made: list = []

    def record() -> None:
        y = x * 2
        y.register_hook(lambda g: g * 3)
        made.append(y)

    thread = threading.Thread(target=record)
    thread.start()
    thread.join()
    time.sleep(0)
    made.pop().backward(ones(x))
    assert x.grad.tolist() == [6.0, 6.0]


def test_a_fork_while_other_threads_work() -> None:
    """The forked child can record, use hooks and differentiate, whatever locks other threads held."""
    program = textwrap.dedent("""
        import os, threading, warnings
        import rushlight_core as core
        import rushlight_autograd

        stop = threading.Event()

        def work():
            while not stop.is_set():
                x = core.ones(3, requires_grad=True)
                y = x * 2
                y.register_hook(lambda g: None).remove()
                y.sum().backward()

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        warnings.simplefilter("ignore")  # the warning about a fork while threads run
        failed = 0
        for _ in range(20):
            child = os.fork()
            if child == 0:
                x = core.ones(3, requires_grad=True)
                y = x * 3
                y.register_hook(lambda g: g * 2)
                y.sum().backward()
                os._exit(x.grad.tolist() != [6.0, 6.0, 6.0])
            failed += os.waitpid(child, 0)[1] != 0
        stop.set()
        for thread in threads:
            thread.join()
        raise SystemExit(failed)
    """)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr


def test_the_counts_of_weights_have_no_derivative() -> None:
    """backward() raises an error that names bincount if its weights require grad."""
    weights = core.ones(2, requires_grad=True)
    counts = core.bincount(core.tensor([1, 0]), weights)
    assert counts.requires_grad
    with pytest.raises(RuntimeError, match="bincount"):
        counts.sum().backward()


def test_normalisation_of_no_samples_twice() -> None:
    x, weight = core.zeros(0, 4, 3, requires_grad=True), core.ones(4, requires_grad=True)
    first = grad(core.group_norm(x, 2, weight).sum(), [x, weight], create_graph=True)
    second = grad(first[0].sum() + first[1].sum(), [x, weight], allow_unused=True)
    assert second[0].shape == (0, 4, 3)
    assert second[1].tolist() == [0, 0, 0, 0]


def test_the_derivative_of_a_quotient_by_a_small_number() -> None:
    """The derivative is finite although the square of the divisor underflows."""
    divisor = core.tensor(1e-200, dtype=core.float64, requires_grad=True)
    assert grad(1e-300 / divisor, divisor)[0].item() == pytest.approx(-1e100)
    (found,) = grad(core.tensor(1e-300, dtype=core.float64) / divisor, divisor)
    assert found.item() == pytest.approx(-1e100)
