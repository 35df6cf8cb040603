"""Measure the time of capturing ResNet-50, without writing a file."""

from __future__ import annotations

import time
from typing import Any

from .. import process


def capture(send: process.Send, module: str) -> None:
    """Measure the CPU milliseconds of `export.export` of ResNet-50, after an export of one layer."""
    if module != "torch":
        import rushlight.as_torch

        rushlight.as_torch.install()
    import torch

    from ..table1.models import ResNet50

    def spent(model: Any, x: Any) -> float:
        before = time.process_time_ns()
        torch.export.export(model, (x,))
        return (time.process_time_ns() - before) / 1e6

    torch.set_num_threads(1)
    with torch.no_grad():
        spent(torch.nn.Linear(8, 8), torch.zeros(1, 8))  # the first call imports modules, and does not count
        send(spent(ResNet50().eval(), torch.zeros(1, 3, 224, 224)))
