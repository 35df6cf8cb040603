"""Test calls with bad input on tensors that require grad.

A call must raise an error and leave the autograd graph unchanged, or its result must be differentiable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight_testing.bad_input.cases import Call, Case, call
from rushlight_testing.bad_input.verdict import TYPED, flat, written_names

Gradient = Callable[..., Any]


def judge_gradients(op: Any, library: Any, gradient: Gradient, case: Case) -> str | None:
    """Run one case on tensors that require grad, and differentiate the result.

    Args:
        op: the operator's YAML entry, a `rushlight_core.codegen.model.Op`.
        library: the module whose operators are called.
        gradient: the function `grad(outputs, inputs, grad_outputs, allow_unused=...)` of the package that
            computes gradients.
        case: the arguments of the call, one of the cases that `cases_of` yields.

    Returns:
        A sentence that describes what is wrong, or None.

    Example:
        >>> from rushlight_testing.bad_input import cases_of
        >>> from rushlight_testing.operators import operators
        >>> op = next(op for op in operators() if op.name == "add")
        >>> judge_gradients(op, torch, torch.autograd.grad, next(cases_of(op, torch))) is None
        True
    """
    try:
        given = case.make()
    except MemoryError:
        return None
    except Exception as error:
        return f"cannot be made: {type(error).__name__}: {error}"
    leaves = _require_grad(op, library, given)
    written = [t for name in written_names(op, given) for t in flat(given.arguments.get(name), library)]
    histories = [(t, str(t.grad_fn)) for t in written]
    library.manual_seed(0)
    try:
        result = call(op, library, given)
    except TYPED:
        return _traces(leaves, histories)
    except Exception as error:
        return f"raised {type(error).__name__}, which is not a typed error: {error}"
    outputs = [t for t in [*flat(result, library), *written] if t.requires_grad and t.grad_fn is not None]
    outputs = list({id(t): t for t in outputs}.values())
    if not outputs or not leaves or len({t.device for t in [*outputs, *leaves]}) > 1:
        return None  # there is nothing to differentiate, or several devices
    try:
        found = gradient(outputs, leaves, [library.ones_like(t.detach()) for t in outputs], allow_unused=True)
    except (NotImplementedError, MemoryError):
        return None
    except Exception as error:
        if any(limit in str(error) for limit in ("at most 64 dimensions", "overflows a 64-bit")):
            return None  # an intermediate tensor of the formula is larger than the input
        return f"worked, but its gradient raised {type(error).__name__}: {error}"
    for leaf, grad in zip(leaves, found, strict=True):
        if grad is None:
            continue
        if grad.shape != leaf.shape or grad.dtype != leaf.dtype or grad.device != leaf.device:
            return f"the gradient of {_text(leaf)} is {_text(grad)}"
        if grad.device.type == "cpu":
            grad.clone()
    return None


def _require_grad(op: Any, library: Any, given: Call) -> list[Any]:
    """Make tensors of differentiable dtypes require grad, and return the leaves.

    A tensor that the call modifies in place is replaced by a clone of a leaf, because a leaf that requires
    grad cannot be modified in place."""
    written = written_names(op, given)
    leaves: list[Any] = []

    def prepared(value: Any, is_written: bool) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)([prepared(one, is_written) for one in value])
        if not isinstance(value, library.Tensor) or not (value.is_floating_point() or value.is_complex()):
            return value
        if value._read_only or (is_written and not value.is_contiguous()):
            return value
        leaf = value.detach().requires_grad_()  # a new tensor, so that the sample is not changed
        leaves.append(leaf)
        return leaf.clone() if is_written else leaf

    for name, value in given.arguments.items():
        given.arguments[name] = prepared(value, name in written)
    return leaves


def _traces(leaves: list[Any], histories: list[tuple[Any, Any]]) -> str | None:
    """Describe how a call that raised an error has changed the graph of its tensors; return None if it is unchanged."""
    for t in leaves:
        if not t.is_leaf or t.grad_fn is not None or not t.requires_grad:
            return f"failed, but {_text(t)} is not a leaf any more: grad_fn is {t.grad_fn}"
    for t, before in histories:
        if str(t.grad_fn) != before:
            return f"failed, but the history of {_text(t)} is {t.grad_fn}, not {before}"
    return None


def _text(t: Any) -> str:
    return f"{t.dtype} {tuple(t.shape)} on {t.device}"
