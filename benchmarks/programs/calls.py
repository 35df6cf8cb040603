"""Measure calls of a model: the program, eager rushlight and onnxruntime, in one process and on one thread.

The program is run by `Program.run` in C++, called from Python, with batch norms folded into convolutions; if there are any,
the program without folding is measured, too. Eager rushlight is called from Python in inference mode, so that its time
includes some microseconds of Python for each layer.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .. import process
from ..harness import Loop, Plan, interleave

# The forward pass has other arguments than the loss: the first ones of a batch.
ARGUMENTS = {"alexnet": 1, "vgg19": 1, "resnet50": 1, "mobilenetv2": 1, "gnmt": 2, "ncf": 2}
RTOL, ATOL = 1e-4, 1e-5
_SLOW_S = 0.3  # a call of this length is a block by itself


def measure(send: process.Send, name: str, size: int, threads: int, quick: bool) -> None:
    """Run in the fresh process: send whether the three agree, then the nanoseconds of each in each round."""
    import onnxruntime

    import rushlight.as_torch

    rushlight.as_torch.install()
    import torch

    from ..table1.workloads import WORKLOADS

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = WORKLOADS[name].build().eval()
    for key, buffer in model.named_buffers():  # set the statistics of batch norms as after training
        if key.endswith("running_mean"):
            buffer.normal_(0.0, 0.1)
        elif key.endswith("running_var"):
            buffer.uniform_(0.5, 1.5)
    arguments = WORKLOADS[name].batch(size)[: ARGUMENTS[name]]
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        rl, onnx = str(Path(folder, "model.rl")), str(Path(folder, "model.onnx"))
        torch.onnx.export(model, arguments, onnx)
        session = onnxruntime.InferenceSession(onnx, settings, providers=["CPUExecutionProvider"])
        captured = torch.export.export(model, arguments)
        torch.export.save(captured.simplify(fold_batch_norm=True), rl)
        program = torch.export.load(rl).program
        inputs = list(arguments)
        feeds = {given.name: t.numpy() for given, t in zip(session.get_inputs(), arguments, strict=True)}
        calls: dict[str, Callable[[], Any]] = {
            "program": lambda: program.run(inputs)[0],
            "eager": lambda: model(*arguments),
            "onnxruntime": lambda: session.run(None, feeds)[0],
        }
        folded = "batch_norm" in str(captured)
        torch.export.save(captured, rl)  # the old file stays as long as its program
        as_captured = torch.export.load(rl).program
        del captured
        run_captured: Callable[[], Any] = lambda: as_captured.run(inputs)[0]  # noqa: E731
        if folded:
            calls["captured"] = run_captured
        slowest = _warm(calls)
        send(_agreement(torch, calls, run_captured))
        rounds = 3 if quick else 40
        plan = Plan(
            rounds=rounds,
            minimum_rounds=1 if quick else 3,
            block_s=4e-3,
            seconds=2.0 if quick else 12.0,
            calls=1 if slowest > _SLOW_S else None,
        )
        subjects = [Loop(key, "call()", {"call": call}, time.process_time_ns) for key, call in calls.items()]
        series = interleave(subjects, plan)
    send({subject.name: found.per_call() for subject, found in zip(subjects, series, strict=True)})


def _warm(calls: dict[str, Callable[[], Any]]) -> float:
    """Call each once, and again unless that took more than two seconds. Return the longest time of a last call."""
    slowest = 0.0
    for call in calls.values():
        for _ in range(2):
            before = time.process_time()
            call()
            spent = time.process_time() - before
            if spent > 2:
                break
        slowest = max(slowest, spent)
    return slowest


def _agreement(
    torch: Any, calls: dict[str, Callable[[], Any]], run_captured: Callable[[], Any]
) -> dict[str, Any]:
    """Return whether the captured program agrees with eager, and the distance from onnxruntime relative to the tolerance."""
    winograd = torch.backends.cpu.winograd
    torch.backends.cpu.winograd = False
    try:
        ours, same = calls["program"]().numpy(), run_captured().numpy()
        eager = calls["eager"]().numpy()
    finally:
        torch.backends.cpu.winograd = winograd
    theirs = calls["onnxruntime"]()
    return {
        "as_eager": bool(np.array_equal(same, eager)),
        "distance": float(np.max(np.abs(ours - theirs) / (ATOL + RTOL * np.abs(theirs)))),
    }
