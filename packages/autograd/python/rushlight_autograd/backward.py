"""backward() and grad(): PyTorch's entry points to the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

from rushlight_autograd._C import _run_backward
from rushlight_core import Tensor

TensorOrTensors = Tensor | Sequence[Tensor]


def _tuple(value: TensorOrTensors | None) -> tuple[Tensor, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, Tensor) else tuple(value)


def backward(
    tensors: TensorOrTensors,
    grad_tensors: TensorOrTensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: TensorOrTensors | None = None,
) -> None:
    """Adds the gradients of `tensors` to the `grad` of the leaves they were computed from, or of `inputs` only.

    `grad_tensors` has a gradient of each tensor's shape, or None for tensors of one element. With `create_graph` the
    gradients can themselves be differentiated. The graph is freed unless `retain_graph` (default: `create_graph`).

    Raises RuntimeError for a tensor without history, and for a graph that was freed.
    """
    if inputs is not None and len(_tuple(inputs)) == 0:
        raise RuntimeError("backward(): inputs= must not be empty")
    keep = create_graph if retain_graph is None else retain_graph
    grads = _tuple(grad_tensors) if grad_tensors is not None else None
    _run_backward(_tuple(tensors), grads, _tuple(inputs), keep, create_graph, True)


@overload
def grad(
    outputs: TensorOrTensors,
    inputs: TensorOrTensors,
    grad_outputs: TensorOrTensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: Literal[False] | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: TensorOrTensors,
    inputs: TensorOrTensors,
    grad_outputs: TensorOrTensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    *,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: Literal[True],
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: TensorOrTensors,
    inputs: TensorOrTensors,
    grad_outputs: TensorOrTensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]: ...
def grad(
    outputs: TensorOrTensors,
    inputs: TensorOrTensors,
    grad_outputs: TensorOrTensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Returns the gradients of the sum of `outputs` (weighted by `grad_outputs`) for each of `inputs`.

    Nothing is accumulated into `.grad`. An input that the outputs do not depend on raises RuntimeError, unless
    `allow_unused` (then its gradient is None) or `materialize_grads` (then it is zeros).
    """
    if not only_inputs:
        raise ValueError(
            "grad(): only_inputs=False is not supported; use backward() to accumulate into leaves"
        )
    if is_grads_batched:
        raise NotImplementedError("grad(): is_grads_batched=True is not supported yet")
    if materialize_grads and allow_unused is False:
        raise ValueError("grad(): materialize_grads=True needs allow_unused to be True or None")
    keep = create_graph if retain_graph is None else retain_graph
    wanted = _tuple(inputs)
    if not wanted:
        raise ValueError("grad(): inputs must not be empty")
    grads = _tuple(grad_outputs) if grad_outputs is not None else None
    result = _run_backward(_tuple(outputs), grads, wanted, keep, create_graph, False)
    if materialize_grads:
        from rushlight_core import zeros_like

        return tuple(zeros_like(x) if g is None else g for g, x in zip(result, wanted, strict=True))
    if not allow_unused:
        for i, g in enumerate(result):
            if g is None:
                raise RuntimeError(
                    f"grad(): input {i} (shape {tuple(wanted[i].shape)}) was not used to compute the outputs\n"
                    "hint: pass allow_unused=True to get None for it"
                )
    return tuple(result)
