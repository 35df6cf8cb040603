"""The seam of dispatch for providers that are written in Python.

A stage sees every call of an operator on tensors that ask for it, before the kernel does. Its provider is one function,
given to `provide_stage`, and called with

* the operator's name ("add", "add_", "sum.out"),
* its arguments, one for each of its schema's, defaults included,
* a number that stands for the stages still to come: `go_on(rest, name, *args)` hands the call on to them.

What the function returns is the operator's result. Providers in C++ install typed functions instead
(rushlight/dispatch.h). A process has one provider of a stage.

The provider of gradients, the stage "autograd", also calls `provide_state`, and hangs what it knows of a tensor on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _C

__all__ = [
    "get_state",
    "go_on",
    "provide_stage",
    "provide_state",
    "set_computed",
    "set_state",
    "stage_off",
    "stage_on",
]

StageFunction = Callable[[str, tuple[Any, ...], int], Any]


def provide_stage(stage: str, function: StageFunction) -> None:
    """Attach a stage's provider, for the rest of the process: "autograd", "dual", "batch", "autocast" or "tracer".

    Raises RuntimeError when the stage has one.
    """
    _C._provide_stage(stage, function)


def go_on(rest: int, name: str, *args: Any) -> Any:
    """The call as the later stages and the kernel answer it; `rest` is what the stage's function was given."""
    return _C._call_from(rest, name, *args)


@contextmanager
def stage_on(stage: str) -> Iterator[None]:
    """Inside, the stage sees every operator of this thread, whatever its tensors ask for: how a tracer is turned on."""
    before = _C._set_stage_on(stage, True)
    try:
        yield
    finally:
        _C._set_stage_on(stage, before)


@contextmanager
def stage_off(stage: str) -> Iterator[None]:
    """Inside, operators of this thread pass by the stage. Grad mode stays what the user set."""
    before = _C._set_stage_off(stage, True)
    try:
        yield
    finally:
        _C._set_stage_off(stage, before)


def provide_state() -> None:
    """Claims the per-tensor state of this process. Raises RuntimeError when another provider has it."""
    _C._provide_state()


def get_state(tensor: _C.Tensor) -> Any:
    """What the provider hung on the tensor, or None."""
    return _C._get_state(tensor)


def set_state(tensor: _C.Tensor, state: Any) -> None:
    """Hangs an object on the tensor: it lives as long as the tensor, or until another takes its place."""
    _C._set_state(tensor, state, False)


def set_computed(tensor: _C.Tensor, state: Any) -> None:
    """The same, and from now on the tensor is no leaf and requires grad: it was computed from one that does."""
    _C._set_state(tensor, state, True)
