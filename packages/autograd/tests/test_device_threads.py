"""Each device except the CPU has a thread, which runs the nodes of the device; results are the same. Devices are toys."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from autograd_samples import leaf

import rushlight_core as core
from rushlight_autograd import (
    Function,
    grad,
    parallel_branches,
    set_detect_anomaly,
    set_multithreading_enabled,
)
from rushlight_core import devices
from rushlight_core._streams import current_stream
from rushlight_testing.native import compile_plugin


@pytest.fixture(scope="session")
def toy_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_plugin("toy_device", tmp_path_factory.mktemp("toy"))


@pytest.fixture(autouse=True)
def _toy(toy_library: Path) -> None:
    devices.load_backend(toy_library)


def watched(t, name: str, seen: dict[str, list[int]]):
    """Return `t` with a hook that stores the thread on which its gradient arrives."""
    t.register_hook(lambda g: seen.setdefault(name, []).append(threading.get_ident()))
    return t


def through_devices(x, w, seen: dict[str, list[int]]):
    """Return (2x + x^2)^2 w: compute the first step on toy:0, the second on toy:1, and the last on the CPU."""
    y = watched(x * 2.0 + x * x, "toy:0", seen)
    z = y.to("toy:1")
    z = watched(z * z, "toy:1", seen)
    return watched(z.cpu() * w, "cpu", seen)


def test_each_device_has_one_thread() -> None:
    seen: dict[str, list[int]] = {}
    x = core.ones(3, device="toy:0", requires_grad=True)
    w = core.ones(3, requires_grad=True)
    for _ in range(3):
        through_devices(x, w, seen).sum().backward()
    assert x.grad.device == x.device
    assert x.grad.cpu().tolist() == [72.0] * 3
    assert w.grad.tolist() == [27.0] * 3
    assert set(seen["cpu"]) == {threading.get_ident()}
    assert len(set(seen["toy:0"])) == len(set(seen["toy:1"])) == 1
    assert len({*seen["cpu"], *seen["toy:0"], *seen["toy:1"]}) == 3


def test_gradients_move_to_where_their_argument_is() -> None:
    x = leaf(3)
    there = core.zeros(3, device="toy:0")
    there.copy_(x * 2)
    (there * there).sum().backward()
    assert x.grad.device.type == "cpu"
    assert x.grad.tolist() == pytest.approx((8 * x.detach()).tolist())


def test_leaves_of_the_host_are_the_callers() -> None:
    seen: dict[str, list[int]] = {}
    x = leaf(3)
    x.register_post_accumulate_grad_hook(lambda t: seen.setdefault("leaf", []).append(threading.get_ident()))
    y = watched(x.to("toy:0") * 3.0, "toy:0", seen)
    y.sum().backward()
    assert x.grad.tolist() == [3.0] * 3
    assert seen["leaf"] == [threading.get_ident()] != seen["toy:0"]


@pytest.mark.parametrize("branches", [False, True])
def test_the_bits_are_those_of_one_thread(branches: bool) -> None:
    x = core.randn(57).requires_grad_()
    w = core.randn(57)

    def network():
        ends = []
        for i in range(6):
            y = x * (1.1 + i)
            for _ in range(4):
                y = y.to(f"toy:{i % 2}") * 0.9
                y = y.cpu().tanh() + x * 0.1
            ends.append(y)
        return sum(ends)

    with set_multithreading_enabled(False):
        (alone,) = grad(network(), x, w)
    for _ in range(10):
        with parallel_branches(branches):
            (together,) = grad(network(), x, w)
        assert (together == alone).all()


def test_without_threads_the_caller_runs_all() -> None:
    seen: dict[str, list[int]] = {}
    x, w = core.ones(3, device="toy:0", requires_grad=True), core.ones(3, requires_grad=True)
    out = through_devices(x, w, seen).sum()
    with set_multithreading_enabled(False):
        out.backward(retain_graph=True)
    assert {i for idents in seen.values() for i in idents} == {threading.get_ident()}
    out.backward()
    assert len({i for idents in seen.values() for i in idents}) == 3


def test_the_callers_state_goes_along() -> None:
    class Asks(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            asked.append((threading.get_ident(), core.is_grad_enabled()))
            return g * 1.0

    asked: list[tuple[int, bool]] = []
    x = core.ones(3, device="toy:0", requires_grad=True)
    out = Asks.apply(x * x).sum()
    (first,) = grad(out, x, create_graph=True)
    (second,) = grad(first.sum(), x, retain_graph=True)
    assert second.cpu().tolist() == [2.0] * 3
    grad(out, x)
    assert [enabled for _, enabled in asked] == [True, False]
    assert threading.get_ident() not in dict(asked)


@pytest.mark.parametrize("threads", [True, False])
def test_every_device_uses_the_callers_stream(threads: bool) -> None:
    """A node of one device also queues copies to the other device."""
    w = core.ones(4, device="toy:1", requires_grad=True)
    devices.synchronize("toy:1")
    with core.Stream("toy:0"), core.Stream("toy:1"), set_multithreading_enabled(threads):
        h = (w * 3.0) * (w * 2.0)
        (h.to("toy:0") * 2.0).sum().backward()
        assert w.grad.cpu().tolist() == [24.0] * 4


@pytest.mark.parametrize("threads", [True, False])
def test_nodes_run_on_the_stream_of_their_operator(threads: bool) -> None:
    def stream_of(name: str):
        return lambda _: seen.__setitem__(name, current_stream("toy:0"))

    seen: dict[str, core.Stream] = {}
    left, right, last, outer = (core.Stream("toy:0") for _ in range(4))
    w = core.ones(4, device="toy:0", requires_grad=True)
    w.register_post_accumulate_grad_hook(stream_of("w"))
    devices.synchronize("toy:0")
    with left:
        a = w * 3.0
        b = a * a
    with right:
        c = w * 2.0
        d = c * c
    for stream in (left, right):
        last.wait_stream(stream)
    with last:
        loss = (b + d).sum()
    for name, t in (("a", a), ("c", c), ("loss", loss)):
        t.register_hook(stream_of(name))
    with outer, set_multithreading_enabled(threads):
        loss.backward()
        assert w.grad.cpu().tolist() == [18.0 + 8.0] * 4
    assert seen == {"a": left, "c": right, "loss": last, "w": outer}
    assert current_stream("toy:0").stream_id == 0


@pytest.mark.parametrize("threads", [True, False])
def test_the_callers_stream_waits_for_the_pass(threads: bool) -> None:
    w = core.ones(4, device="toy:0", requires_grad=True)
    devices.synchronize("toy:0")
    with core.Stream("toy:0"):
        h = w * 3.0
        loss = (h * h).sum()
    with set_multithreading_enabled(threads):
        (of_h,) = grad(loss, h, retain_graph=True)
        assert of_h.cpu().tolist() == [6.0] * 4
        loss.backward()
    assert w.grad.cpu().tolist() == [18.0] * 4


def test_a_view_has_the_stream_of_the_call_that_made_it() -> None:
    side = core.Stream("toy:0")
    seen: list[core.Stream] = []
    w = core.ones(4, device="toy:0", requires_grad=True)
    devices.synchronize("toy:0")
    with side:
        h = w * 3.0
        h[:2].mul_(2.0)
        loss = (h[1:] * h[1:]).sum()
    h.register_hook(lambda _: seen.append(current_stream("toy:0")))
    loss.backward()
    assert w.grad.cpu().tolist() == [0.0, 72.0, 18.0, 18.0]
    assert seen == [side]


def test_exceptions_arrive_as_they_are() -> None:
    def fails(g):
        raise KeyError("mine")

    x = core.ones(3, device="toy:0", requires_grad=True)
    for _ in range(3):
        y = x * 2.0
        y.register_hook(fails)
        with pytest.raises(KeyError, match="mine") as caught:
            y.sum().backward()
        assert caught.traceback[-1].name == "fails"
    assert x.grad is None
    (x * 2.0).sum().backward()
    assert x.grad.cpu().tolist() == [2.0] * 3


def test_passes_of_many_threads_share_a_devices_thread() -> None:
    seen: dict[str, list[int]] = {}
    x, w = core.ones(3, device="toy:0", requires_grad=True), core.ones(3, requires_grad=True)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            for _ in range(5):
                through_devices(x, w, seen).sum().backward()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert w.grad.tolist() == [9.0 * 20] * 3
    assert x.grad.cpu().tolist() == [24.0 * 20] * 3
    assert len(set(seen["toy:0"])) == len(set(seen["toy:1"])) == 1


def test_passes_inside_of_nodes_of_two_devices() -> None:
    """Each device's thread waits for the other's, so both must run jobs of the other while they wait."""
    barrier = threading.Barrier(2)

    def crossing(start: str, other: str):
        def inner(g):
            barrier.wait(timeout=30)
            y = core.ones(2, device=other, requires_grad=True)
            z = core.ones(2, device=start, requires_grad=True)
            with core.enable_grad():
                out = ((y * 3.0).to(start) * z).sum()
            out.backward()
            assert y.grad.cpu().tolist() == [3.0, 3.0]
            assert z.grad.cpu().tolist() == [3.0, 3.0]
            done.append(start)

        x = core.ones(2, device=start, requires_grad=True)
        out = x * 2.0
        out.register_hook(inner)
        out.sum().backward()
        assert x.grad.cpu().tolist() == [2.0, 2.0]
        done.append("outer " + start)

    done: list[str] = []
    threads = [
        threading.Thread(target=crossing, args=pair, daemon=True)
        for pair in (("toy:0", "toy:1"), ("toy:1", "toy:0"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(done) == ["outer toy:0", "outer toy:1", "toy:0", "toy:1"]


def run_program(program: str, library: Path) -> subprocess.CompletedProcess[str]:
    begin = f"""
import os, signal, sys, threading, time
import rushlight_core as core
import rushlight_autograd as autograd
from rushlight_core import devices
devices.load_backend({str(library)!r})
x = core.ones(3, device="toy:0", requires_grad=True)
(x * 2.0).sum().backward()
"""
    return subprocess.run(
        [sys.executable, "-c", begin + textwrap.dedent(program)], capture_output=True, text=True, timeout=60
    )


def test_an_interrupt_while_a_device_works(toy_library: Path) -> None:
    ended = run_program(
        """
        # A job that a shell runs in the background inherits an ignored SIGINT.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        def hook(g):
            assert threading.current_thread() is not threading.main_thread()
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        y = x * 2.0
        y.register_hook(hook)
        try:
            (y * 1.0).sum().backward()
        except KeyboardInterrupt:
            print("interrupted", x.grad.cpu().tolist())
        """,
        toy_library,
    )
    assert ended.stdout == "interrupted [2.0, 2.0, 2.0]\n", ended.stderr


def test_a_fork_in_the_middle_of_a_pass_is_an_error_in_the_child(toy_library: Path) -> None:
    ended = run_program(
        """
        child = []
        def fork(g):
            child.append(os.fork())
        y = (x * 2.0).cpu()
        y.register_hook(fork)
        try:
            (y.to("toy:0") * 1.0).sum().backward()
        except RuntimeError as error:
            assert child == [0]
            # Either check may come first: the pass and the device both belong to the parent.
            expected = ("forked in the middle of a backward pass", "a forked process cannot use the devices of its parent")
            os._exit(7 if any(text in str(error) for text in expected) else 8)
        assert child[0] != 0
        print(os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1]), x.grad.cpu().tolist())
        """,
        toy_library,
    )
    assert ended.stdout == "7 [4.0, 4.0, 4.0]\n", ended.stderr


def test_the_interpreter_ends_while_a_device_works(toy_library: Path) -> None:
    ended = run_program(
        """
        begun = threading.Event()
        def hook(g):
            begun.set()
            time.sleep(0.001)
        def run():
            while True:
                y = x * 2.0
                for _ in range(50):
                    y = y * 1.0
                    y.register_hook(hook)
                y.sum().backward()
        threading.Thread(target=run, daemon=True).start()
        begun.wait()
        """,
        toy_library,
    )
    assert ended.returncode == 0, ended.stderr
    assert "FATAL" not in ended.stderr
    assert "Traceback" not in ended.stderr


def test_anomaly_mode_waits_for_the_device() -> None:
    x = core.tensor([0.5, -1.0], device="toy:0", requires_grad=True)
    with set_detect_anomaly(True):
        (x * 2.0).exp().sum().backward()
        assert x.grad.cpu().tolist() == pytest.approx((2 * (2 * x.detach().cpu()).exp()).tolist())
        with pytest.raises(RuntimeError, match="returned nan"):
            (x - x).sqrt().mul(0.0).sum().backward()


@pytest.mark.parametrize("device", ["toy:0", "meta"])
def test_absent_gradients_are_zeros_where_the_result_is(device: str) -> None:
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append(b.device)
            return a + b

    x = core.ones(2, device=device, requires_grad=True)
    Two.apply(x)[0].sum().backward()
    assert seen == [x.device]
