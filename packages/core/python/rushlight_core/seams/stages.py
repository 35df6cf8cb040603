"""Handle calls of operators in Python before the kernels run, as automatic differentiation and vmap do.

A stage is a step of the dispatch of operators. It handles the calls of operators on tensors that are marked for the stage.
The provider of a stage, which `provide_stage` sets, is the function that handles these calls. The provider is called with

* the name of the operator ("add", "add_", "sum.out"),
* one value for each argument of the operator's schema, including default values,
* a number that represents the remaining stages: `go_on(rest, name, *args)` passes the call on to these stages.

The provider returns the result of the operator. Providers in C++ install typed functions instead (rushlight/dispatch.h). A
stage has at most one provider at a time.

The provider of the stage "autograd", which computes gradients, also calls `provide_state`. It can then attach an object to
each tensor with `set_state` and `set_computed`.
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
    "withdraw_stage",
]

StageFunction = Callable[[str, tuple[Any, ...], int], Any]


def provide_stage(stage: str, function: StageFunction) -> None:
    """Make `function` the provider of a stage until :func:`withdraw_stage` is called.

    Args:
        stage: "autograd", "dual", "batch", "autocast", "tracer", or "recorder", which runs after the stages
            that compute gradients.
        function: a function that receives the operator's name, a tuple of its arguments and the number to pass to `go_on`,
            and returns the operator's result.

    Raises:
        RuntimeError: the stage already has a provider.
        ValueError: there is no stage of that name.
        TypeError: `function` cannot be called.

    Example::

        def log(name, args, rest):
            print(name)
            return go_on(rest, name, *args)

        provide_stage("tracer", log)
        x = torch.ones(2)
        with stage_on("tracer"):
            x + 1  # prints add
    """
    _C._provide_stage(stage, function)


def withdraw_stage(stage: str) -> None:
    """Remove the provider that was passed to :func:`provide_stage`, so that the stage can have another provider.

    Args:
        stage: the name of the stage, which must be off in all threads.

    Raises:
        RuntimeError: the stage has no provider that is written in Python.
        ValueError: there is no stage of that name.

    Example::

        provide_stage("tracer", log)
        withdraw_stage("tracer")
    """
    _C._withdraw_stage(stage)


def go_on(rest: int, name: str, *args: Any) -> Any:
    """Call an operator through the remaining stages and the kernel.

    Args:
        rest: the number that the stage's function received.
        name: the operator's name, with its overload.
        args: one value for each argument of the operator's schema.

    Returns:
        The result of the operator.

    Example::

        def double(name, args, rest):
            return go_on(rest, name, *args) * 2
    """
    return _C._call_from(rest, name, *args)


@contextmanager
def stage_on(stage: str) -> Iterator[None]:
    """Make a stage handle every operator that this thread calls in the block, even if no tensor is marked for the stage.

    Args:
        stage: the name of the stage, such as "tracer".

    Example::

        with stage_on("tracer"):
            model(x)
    """
    before = _C._set_stage_on(stage, True)
    try:
        yield
    finally:
        _C._set_stage_on(stage, before)


@contextmanager
def stage_off(stage: str) -> Iterator[None]:
    """Skip a stage for the operators that this thread calls in the block.

    The result of `is_grad_enabled()` does not change.

    Args:
        stage: the name of the stage.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with stage_off("autograd"):
        ...     y = x * 2
        >>> y.requires_grad
        False
    """
    before = _C._set_stage_off(stage, True)
    try:
        yield
    finally:
        _C._set_stage_off(stage, before)


def provide_state() -> None:
    """Enable :func:`set_state`, :func:`set_computed` and :func:`get_state`.

    The first two functions attach an object to a tensor, and the third function returns this object.

    Raises:
        RuntimeError: this function was called before, or the package rushlight_autograd is loaded.

    Example::

        provide_state()
        set_state(tensor, node)
    """
    _C._provide_state()


def get_state(tensor: _C.Tensor) -> Any:
    """Return the object that :func:`set_state` or :func:`set_computed` attached to a tensor, or None if there is none.

    Args:
        tensor: a tensor of any shape.

    Raises:
        RuntimeError: `provide_state` was not called.

    Example::

        node = get_state(tensor)
    """
    return _C._get_state(tensor)


def set_state(tensor: _C.Tensor, state: Any) -> None:
    """Attach an object to a tensor, and detach the object that was attached before.

    Args:
        tensor: a tensor of any shape.
        state: the object.

    Raises:
        RuntimeError: `provide_state` was not called.

    Example::

        set_state(tensor, node)
        get_state(tensor) is node  # True
    """
    _C._set_state(tensor, state, False)


def set_computed(tensor: _C.Tensor, state: Any) -> None:
    """Attach an object to a tensor that was computed from a tensor that requires grad.

    After the call, the tensor requires grad and is not a leaf.

    Args:
        tensor: a tensor of any shape.
        state: the object.

    Raises:
        RuntimeError: `provide_state` was not called.

    Example::

        set_computed(result, node)
        result.is_leaf, result.requires_grad  # (False, True)
    """
    _C._set_state(tensor, state, True)
