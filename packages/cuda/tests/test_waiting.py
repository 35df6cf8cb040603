"""Which operators make the host wait for the device: those with the key `synchronises`, and no others.

The driver counts the calls in which the host waits: for a stream, an event, a device or a copy.
"""

from __future__ import annotations

import contextlib
import ctypes

import pytest

import rushlight as torch
import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing.operators import TYPED_ERRORS, all_samples, boxed, map_tensors, operators, tensors_in
from rushlight_testing.samples import Sample, arguments_of

DTYPES = ("float32", "int64", "bool", "complex64")


def on_device(op: Op, sample: Sample) -> Sample:
    """Return a sample on the device, except for arguments that must be on the host."""
    on_host = {id(t) for name in op.host for t in tensors_in(arguments_of(op, sample)[name])}
    moved = map_tensors(lambda t: t if id(t) in on_host else t.to("cuda"), sample)
    if arguments_of(op, sample).get("device", "") is None:
        moved.kwargs["device"] = core.device("cuda")
    return moved


def waits(driver: ctypes.CDLL, op: Op) -> list[tuple[str, int]]:
    """Call an operator with its samples, and return how often the host waited in each call that the device supports."""
    found = []
    for dtype in DTYPES:
        for sample in all_samples(op, dtype):
            moved = on_device(op, sample)
            try:
                boxed(op, map_tensors(lambda t: t.clone(), moved))  # plans and other buffers are created once
                before = driver.fake_cuda_waits()
                boxed(op, moved)
            except (
                TYPED_ERRORS
            ):  # of NotImplementedError, too: the device has no kernel, or not for this dtype
                continue
            found.append((f"{dtype}: {sample.text}", driver.fake_cuda_waits() - before))
    with contextlib.suppress(*TYPED_ERRORS):  # kernels may have rejected values of samples
        torch.cuda.synchronize()
    return found


WITH_SAMPLES = [op for op in operators() if op.samples]


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in WITH_SAMPLES if not op.synchronises])
def test_no_other_operator_waits(driver: ctypes.CDLL, op: Op) -> None:
    seen = waits(driver, op)
    if not seen:
        pytest.skip("the tested plug-in has no kernel")
    assert [text for text, count in seen if count] == []


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in WITH_SAMPLES if op.synchronises])
def test_operators_that_are_listed_wait(driver: ctypes.CDLL, op: Op) -> None:
    seen = waits(driver, op)
    if not seen:
        pytest.skip("the tested plug-in has no kernel")
    assert any(count for _, count in seen), "the key `synchronises` is wrong, or no sample waits"
