"""Law: if an allocation fails during a call, for a result or for scratch memory, the call raises OutOfMemoryError.

The arguments and the random generator are unchanged, all memory that the call had allocated is released, and the next call
works. Every sample runs on an allocator that refuses one request: the first, then the second, and so on.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_core.seams.allocator import set_allocator
from rushlight_testing import Sample
from rushlight_testing.native import compile_plugin
from rushlight_testing.operators import (
    TYPED_ERRORS,
    all_samples,
    call,
    flat,
    inplace,
    map_tensors,
    operators,
    tensors_in,
)

Run = Callable[[Sample], Any]
DTYPES = ("float32", "bfloat16", "int64")


@pytest.fixture(scope="module")
def allocator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ctypes.CDLL]:
    """Install the guard allocator for all memory, and return its library."""
    path = compile_plugin("guard_allocator", tmp_path_factory.mktemp("guard"))
    library = ctypes.CDLL(str(path))
    library.guard_allocator.restype = ctypes.c_void_p
    library.guard_refuse_after.argtypes = [ctypes.c_int64]
    for name in ("guard_live_bytes", "guard_total_blocks"):
        getattr(library, name).restype = ctypes.c_size_t
    former = set_allocator(library.guard_allocator())
    yield library
    set_allocator(former)


def bits(value: Any) -> Any:
    if not isinstance(value, core.Tensor):
        return repr(value)
    if value.numel() == 0:
        return tuple(value.shape)
    dense = value.contiguous().reshape(-1)
    return tuple(value.shape), (
        dense if dense.dtype == core.bool else dense.view(core.uint8)
    ).numpy().tobytes()


def run(call_it: Run, sample: Sample) -> Any:
    """Return the results as bits, or the error."""
    core.manual_seed(0)
    try:
        return [bits(r) for r in flat(call_it(sample))]
    except TYPED_ERRORS as error:
        return error.with_traceback(None)


def check(text: str, call_it: Run, make: Callable[[], Sample], memory: Any) -> int:
    """Refuse each request of the call in turn, and return the number of requests."""
    wanted = run(call_it, make())
    if isinstance(wanted, Exception):
        return 0
    sample = make()
    before = memory.guard_total_blocks()
    core.manual_seed(0)
    results = call_it(sample)
    requests = memory.guard_total_blocks() - before
    del results, sample
    for refused in range(requests):
        sample = make()
        tensors = tensors_in([*sample.args, *sample.kwargs.values()])
        values, live = [bits(t) for t in tensors], memory.guard_live_bytes()
        core.manual_seed(0)
        generator = bits(core.get_rng_state())
        memory.guard_refuse_after(refused)
        try:
            call_it(sample)
        except core.OutOfMemoryError:
            pass
        except TYPED_ERRORS as error:
            raise AssertionError(
                f"{text}: request {refused} was refused: {type(error).__name__}: {error}"
            ) from None
        else:
            continue  # the call works without this block
        finally:
            memory.guard_refuse_after(-1)
        changed = [i for i, (t, was) in enumerate(zip(tensors, values, strict=True)) if bits(t) != was]
        assert not changed, f"{text}: request {refused} was refused, and tensors {changed} are changed"
        assert bits(core.get_rng_state()) == generator, (
            f"{text}: request {refused} was refused, and the random generator has advanced"
        )
        gc.collect(0)
        assert memory.guard_live_bytes() == live, f"{text}: request {refused} was refused, and memory is lost"
    assert run(call_it, make()) == wanted, f"{text}: other results after memory ran out"
    return requests


def cloned(sample: Sample) -> Sample:
    return map_tensors(lambda t: t.clone(), sample)


def forms(op: Op, dtype: str) -> Iterator[tuple[str, Run, Callable[[], Sample]]]:
    """Yield a text, a function to call and a function that makes its arguments: plain, in place and with out=."""
    for sample in all_samples(op, dtype):
        text = f"{op.name}({sample.text}) of {dtype}"

        def same(sample: Sample = sample) -> Sample:
            return cloned(sample) if op.is_inplace else sample

        def copied(sample: Sample = sample) -> Sample:
            return cloned(sample)

        yield text, lambda s: call(op, s), same
        if "inplace" in op.variants:
            yield f"{text}, in place", lambda s: inplace(op, s), copied
        if "out" in op.variants and not isinstance(run(lambda s: call(op, s), sample), Exception):
            core.manual_seed(0)
            results = call(op, sample)

            def with_out(sample: Sample = sample, results: Any = results) -> Sample:
                return replace(sample, kwargs={**sample.kwargs, "out": map_tensors(core.ones_like, results)})

            yield f"{text}, out=", lambda s: call(op, s), with_out


@pytest.mark.parametrize(
    ("op", "dtype"),
    [pytest.param(op, DTYPES[i % len(DTYPES)], id=op.name) for i, op in enumerate(operators()) if op.samples],
)
def test_running_out_of_memory_changes_nothing(op: Op, dtype: str, allocator: Any) -> None:
    for text, call_it, make in forms(op, dtype):
        check(text, call_it, make, allocator)


# Calls that use scratch memory on several threads.
LARGE: dict[str, Callable[[], tuple[Run, tuple[Any, ...]]]] = {
    "matmul": lambda: (lambda s: s.args[0] @ s.args[1], (core.rand(301, 299), core.rand(299, 303))),
    "convolution": lambda: (
        lambda s: core.conv2d(*s.args),
        (core.rand(4, 16, 33, 33), core.rand(8, 16, 3, 3)),
    ),
    "sort": lambda: (lambda s: core.sort(*s.args, dim=0), (core.rand(70, 2000).t(),)),
    "solve": lambda: (
        lambda s: core.linalg.solve(*s.args),
        (core.rand(64, 20, 20) + core.eye(20), core.rand(64, 20, 3)),
    ),
    "fft": lambda: (lambda s: core.fft.fft(*s.args), (core.rand(64, 1009),)),
}


@pytest.mark.parametrize("name", LARGE)
def test_running_out_of_scratch_memory_on_several_threads(name: str, allocator: Any) -> None:
    call_it, arguments = LARGE[name]()
    sample = Sample("large", arguments)
    results = len(flat(call_it(sample)))
    assert check(name, call_it, lambda: sample, allocator) > results, "it needs memory for its results alone"


def test_what_running_out_must_not_do_is_noticed(allocator: Any) -> None:
    def make() -> Sample:
        return Sample("made here", (core.ones(3),))

    def forgets_the_old_values(sample: Sample) -> Any:
        sample.args[0].fill_(2)
        return sample.args[0] + 1

    def raises_something_else(sample: Sample) -> Any:
        try:
            return sample.args[0] + 1
        except core.OutOfMemoryError:
            raise ValueError("no") from None

    def draws_first(sample: Sample) -> Any:
        core.rand(1)
        return sample.args[0] + 1

    kept = []

    def keeps_memory(sample: Sample) -> Any:
        kept.append(sample.args[0] + 1)
        return sample.args[0] + 1

    for wrong, message in (
        (forgets_the_old_values, "are changed"),
        (raises_something_else, "ValueError: no"),
        (draws_first, "the random generator has advanced"),
        (keeps_memory, "memory is lost"),
    ):
        with pytest.raises(AssertionError, match=message):
            check("made here", wrong, make, allocator)
