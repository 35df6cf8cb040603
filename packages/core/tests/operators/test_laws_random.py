"""Law: an operator that draws random numbers and fails leaves the generator as it was.

Each operator fails in three ways: with the arguments that its entry lists as errors, with each argument replaced by a wrong
one, and with each request for memory refused. The law holds for the default generator and for a generator that is passed,
and for both random streams. A device can report a bad value only after the call, when the generator has advanced.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core import _random as random
from rushlight_core.codegen.model import Op
from rushlight_core.seams.allocator import set_allocator
from rushlight_testing import Sample
from rushlight_testing.native import compile_plugin
from rushlight_testing.operators import (
    TYPED_ERRORS,
    boxed,
    call,
    is_random,
    map_tensors,
    operators,
    random_sample,
)
from rushlight_testing.samples import samples_of

OPS = [pytest.param(op, id=op.name) for op in operators() if is_random(op)]
WRONG = (
    None,
    "wrong",
    -1,
    1e400,
    float("nan"),
    (-2, 3),
    1 << 62,
    True,
    lambda: core.ones(7, 1, 5),
    lambda: core.full((3, 4), -2.0),
    lambda: core.full((3, 4), 2.0),
    lambda: core.ones(3, 4, dtype=core.int64),
    lambda: core.ones(3, 4, device="meta"),
    core.int8,
    core.complex64,
)


@pytest.fixture(params=["philox", "torch"])
def stream(request: pytest.FixtureRequest) -> Iterator[str]:
    with random.stream(request.param):
        yield request.param


@pytest.fixture(scope="module")
def allocator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ctypes.CDLL]:
    """Install the guard allocator for all memory, and return its library."""
    library = ctypes.CDLL(str(compile_plugin("guard_allocator", tmp_path_factory.mktemp("guard"))))
    library.guard_allocator.restype = ctypes.c_void_p
    library.guard_refuse_after.argtypes = [ctypes.c_int64]
    library.guard_total_blocks.restype = ctypes.c_size_t
    former = set_allocator(library.guard_allocator())
    yield library
    set_allocator(former)


def takes_generator(op: Op) -> bool:
    return any(a.type.name == "Generator?" for a in op.schema.arguments)


def forms(op: Op, sample: Sample) -> Iterator[tuple[str, Sample]]:
    """Yield the sample for the default generator, and for a new generator if the operator takes one."""
    yield "default generator", sample
    if takes_generator(op):
        yield "own generator", replace(sample, kwargs={**sample.kwargs, "generator": core.Generator()})


def state_of(sample: Sample) -> bytes:
    own = sample.kwargs.get("generator")
    return (core.get_rng_state() if own is None else own.get_state()).numpy().tobytes()


def fails(text: str, sample: Sample, run: Any) -> bool:
    """Run a call, check the state if it fails, and return whether it fails."""
    before, failure = state_of(sample), None
    try:
        run()
    except TYPED_ERRORS as error:
        failure = error
    if failure is None:
        return False
    assert state_of(sample) == before, f"{text}: the generator has advanced, after: {failure}"
    return True


@pytest.mark.parametrize("op", OPS)
def test_bad_arguments_leave_the_generator(op: Op, stream: str) -> None:
    failures = 0
    for entry in op.errors:
        for sample in samples_of(entry.text, core):
            for which, given in forms(op, sample):
                text = f"{op.name}({sample.text}), {which}"
                failures += fails(text, given, lambda given=given: call(op, given))
    for which, given in forms(op, random_sample(op)):
        assert not fails(op.name, given, lambda given=given: boxed(op, given))
        wrongs = [(name, wrong) for name in given.kwargs if name != "generator" for wrong in WRONG]
        wrongs += [("requires_grad", True), ("dtype", core.int8), ("dtype", core.bool), ("device", "meta:3")]
        wrongs += [("out", wrong) for wrong in (core.ones(0, dtype=core.int8), core.ones(3, 4).numpy(), None)]
        for name, wrong in wrongs:
            # Each call gets new tensors, because operators may write to them.
            kwargs = {
                **map_tensors(lambda t: t.clone(), given).kwargs,
                name: wrong() if callable(wrong) else wrong,
            }
            bad = Sample(f"{name}={wrong}", (), kwargs)
            text = f"{op.name}({bad.text}), {which}"
            failures += fails(text, bad, lambda bad=bad: call(op, bad))
            failures += fails(text, bad, lambda bad=bad: boxed(op, bad))
    assert failures > 0, f"{op.name}: no call fails"


@pytest.mark.parametrize("op", OPS)
def test_running_out_of_memory_leaves_the_generator(op: Op, stream: str, allocator: Any) -> None:
    if stream == "torch" and core.get_default_device().type != "cpu":
        pytest.skip("only the CPU's generator draws PyTorch's random numbers")
    for dtype in (core.float32, core.bfloat16):
        for which, given in forms(op, random_sample(op)):
            sample = map_tensors(lambda t: t.to(dtype).t().clone().t(), given)  # noqa: B023
            before = allocator.guard_total_blocks()
            boxed(op, sample)
            for refused in range(allocator.guard_total_blocks() - before):

                def run(refused: int = refused, sample: Sample = sample) -> None:
                    allocator.guard_refuse_after(refused)
                    try:
                        boxed(op, sample)
                    finally:
                        allocator.guard_refuse_after(-1)

                fails(f"{op.name}, {which}, request {refused}", sample, run)


def test_a_failure_between_two_draws_changes_nothing(stream: str) -> None:
    core.manual_seed(5)
    wanted = [core.rand(40), core.randn(40), core.randperm(9)]
    core.manual_seed(5)
    found = []
    for draw in (lambda: core.rand(40), lambda: core.randn(40), lambda: core.randperm(9)):
        with pytest.raises(RuntimeError):
            core.rand(3, dtype=core.float32, out=core.ones(3, dtype=core.int64))
        with pytest.raises(RuntimeError):
            core.multinomial(core.tensor([[0.5, 0.5], [0.5, -1.0]]), 2, True)
        with pytest.raises(RuntimeError):
            core.poisson(core.tensor([2.0, -1.0]))
        found.append(draw())
    assert all(core.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_draws_of_other_threads_are_not_repeated(stream: str) -> None:
    """Failing calls do not return numbers to the generator if another thread has drawn later numbers."""
    core.manual_seed(1)
    drawn: list[float] = []

    def draw() -> None:
        for _ in range(2000):
            drawn.append(core.rand(1, dtype=core.float64).item())

    threads = [threading.Thread(target=draw) for _ in range(2)]
    for thread in threads:
        thread.start()
    bad = core.tensor([[0.5, 0.5], [0.5, -1.0]])
    while any(thread.is_alive() for thread in threads):
        with pytest.raises(RuntimeError):
            core.multinomial(bad, 2, True)
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == len(drawn)
