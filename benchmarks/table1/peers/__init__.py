"""The training code of each library: a module with `prepare(request) -> step`.

`pytorch` serves rushlight and PyTorch, which run `models.py`. The others run `networks.py`, the same networks as functions
of the operations of `operations.py`, which each library's module implements.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from ..protocol import VARIABLES, Request

Step = Callable[[], float]

# Libraries whose module has another name.
_MODULES = {"rushlight": "pytorch", "torch": "pytorch"}


def prepare(request: Request) -> Step:
    """Build the model, data and optimizer. Calling the result takes one training step and returns the loss."""
    module = importlib.import_module(f".{_MODULES.get(request.library, request.library)}", __name__)
    if unknown := request.switches() - set(module.SWITCHES) - set(VARIABLES):
        raise ValueError(f"mode {request.mode!r}: no such switch: {', '.join(sorted(unknown))}")
    step: Step = module.prepare(request)
    return step
