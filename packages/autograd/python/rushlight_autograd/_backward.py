"""The functions `backward` and `grad`, which run the autograd engine."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

from rushlight_autograd._C import _batch, _close_batch, _open_batch, _run_backward, _unbatch
from rushlight_autograd.graph import GradientEdge
from rushlight_core import Tensor, overrides

TensorOrTensors = Tensor | Sequence[Tensor]
TensorOrEdge = Tensor | GradientEdge
TensorsOrEdges = TensorOrEdge | Sequence[TensorOrEdge]


def _tuple(value: TensorOrTensors | None) -> tuple[Tensor, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _is_tensor_or_edge(value: object) -> bool:
    return isinstance(value, (Tensor, GradientEdge)) or overrides.has_torch_function((value,))


def _tensors_or_edges(value: TensorsOrEdges, function: str, argument: str) -> tuple[TensorOrEdge, ...]:
    items: tuple[Any, ...] = (
        (value,) if _is_tensor_or_edge(value) or not isinstance(value, Iterable) else tuple(value)
    )
    for item in items:
        if not _is_tensor_or_edge(item):
            raise TypeError(
                f"{function}(): {argument} must be Tensors or GradientEdges, not {type(item).__name__}"
            )
    return items


def _overriding(*items: TensorOrEdge) -> list[TensorOrEdge]:
    """Return the items whose class overrides `__torch_function__`."""
    if {type(item) for item in items} <= {Tensor}:
        return []
    return [p for p in items if overrides.has_torch_function((p,))]


def backward(
    tensors: TensorsOrEdges,
    grad_tensors: TensorOrTensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: TensorOrTensors | None = None,
    inputs: TensorsOrEdges | None = None,
) -> None:
    """Compute the gradients of `tensors` with respect to the leaves of the graph, and add them to the `grad` of the leaves.

    Args:
        tensors: the tensors that are differentiated. A `GradientEdge` may be passed in place of a tensor; then its gradient
            must be passed, too.
        grad_tensors: the gradient of each tensor in `tensors`, with the shape of the tensor. None means a gradient of 1, and
            is allowed only for tensors of one element.
        retain_graph: whether to keep the graph, so that `backward` can be called again. The default is the value of
            `create_graph`.
        create_graph: whether the gradients can themselves be differentiated.
        grad_variables: deprecated name of `grad_tensors`.
        inputs: the tensors whose `grad` receives the gradients; all leaves by default.

    Shape:
        - `grad_tensors`: the shapes of `tensors`.

    Raises:
        RuntimeError: a tensor in `tensors` does not require grad, its graph was freed, or `inputs` is empty.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> torch.autograd.backward(x * x, torch.tensor([1.0, 10.0]))
        >>> x.grad
        tensor([ 2., 40.])
    """
    if grad_variables is not None:
        warnings.warn(
            "backward(): grad_variables is deprecated, use grad_tensors", FutureWarning, stacklevel=2
        )
        if grad_tensors is not None:
            raise RuntimeError("backward(): grad_tensors and its old name grad_variables were both given")
        grad_tensors = grad_variables
    wanted = () if inputs is None else _tensors_or_edges(inputs, "backward", "inputs")
    if inputs is not None and not wanted:
        raise RuntimeError("backward(): inputs= must not be empty")
    roots = _tensors_or_edges(tensors, "backward", "tensors")
    if overriding := _overriding(*roots, *wanted):
        overrides.handle_torch_function(
            backward, overriding, tensors, grad_tensors=grad_tensors, retain_graph=retain_graph,
            create_graph=create_graph, inputs=inputs,
        )  # fmt: skip
        return
    keep = create_graph if retain_graph is None else retain_graph
    grads = _tuple(grad_tensors) if grad_tensors is not None else None
    _run_backward(roots, grads, wanted, keep, create_graph, True)


@overload
def grad(
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges,
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
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges,
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
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges,
    grad_outputs: TensorOrTensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]: ...
def grad(
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges,
    grad_outputs: TensorOrTensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the sum of `outputs`, weighted by `grad_outputs`, with respect to `inputs`.

    Unlike :func:`backward`, this function does not change the `.grad` of any tensor.

    Args:
        outputs: the tensor or tensors to differentiate.
        inputs: the tensors, or `GradientEdge`s, whose gradients are returned.
        grad_outputs: the gradient of each output, with the shape of the output. None means a gradient of 1, and is allowed
            only for outputs of one element.
        retain_graph: whether to keep the graph, so that gradients can be computed from it again. The default is the
            value of `create_graph`.
        create_graph: whether the gradients can themselves be differentiated.
        only_inputs: must be True.
        allow_unused: return None for an input that the outputs do not depend on, instead of raising RuntimeError.
        is_grads_batched: whether `grad_outputs` have an additional first dimension, with one gradient at each
            position; the returned gradients then also have this dimension. One pass computes all gradients,
            as in `vmap`.
        materialize_grads: return zeros for an input that the outputs do not depend on.

    Shape:
        - `grad_outputs`: the shapes of the outputs. Gradients: the shapes of the inputs.

    Raises:
        RuntimeError: the outputs do not depend on one of the inputs (unless `allow_unused` or `materialize_grads` is True),
            an output does not require grad, its graph was freed, or `inputs` is empty.
        ValueError: `only_inputs` is False, or `materialize_grads` is combined with `allow_unused=False`.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (gradient,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        >>> gradient.detach(), torch.autograd.grad(gradient.sum(), x)
        (tensor([ 3., 12.]), (tensor([ 6., 12.]),))
    """
    if not only_inputs:
        raise ValueError(
            "grad(): only_inputs=False is not supported; use backward() to accumulate into leaves"
        )
    if materialize_grads and allow_unused is False:
        raise ValueError("grad(): materialize_grads=True needs allow_unused to be True or None")
    keep = create_graph if retain_graph is None else retain_graph
    wanted = _tensors_or_edges(inputs, "grad", "inputs")
    if not wanted:
        raise RuntimeError("grad(): inputs must not be empty")
    roots = _tensors_or_edges(outputs, "grad", "outputs")
    if overriding := _overriding(*roots, *wanted):
        return overrides.handle_torch_function(
            grad, overriding, outputs, inputs, grad_outputs=grad_outputs, retain_graph=retain_graph,
            create_graph=create_graph, only_inputs=only_inputs, allow_unused=allow_unused,
            is_grads_batched=is_grads_batched, materialize_grads=materialize_grads,
        )  # fmt: skip
    grads = _tuple(grad_outputs) if grad_outputs is not None else None
    if is_grads_batched:
        result = _batched(roots, grads, wanted, keep, create_graph)
    else:
        result = _run_backward(roots, grads, wanted, keep, create_graph, False)
    if materialize_grads:
        from rushlight_core import zeros_like

        if not all(isinstance(x, Tensor) for x in wanted):
            raise RuntimeError(
                "grad(): materialize_grads=True needs Tensors: the shape of a GradientEdge is not known"
            )
        return tuple(
            zeros_like(x) if g is None and isinstance(x, Tensor) else g
            for g, x in zip(result, wanted, strict=True)
        )
    if not allow_unused:
        for i, g in enumerate(result):
            if g is None:
                raise RuntimeError(
                    f"grad(): input {i} ({_described(wanted[i])}) was not used to compute the outputs\n"
                    "hint: pass allow_unused=True to get None for it"
                )
    return tuple(result)


def _batched(
    outputs: tuple[TensorOrEdge, ...],
    grads: Sequence[Tensor] | None,
    inputs: tuple[TensorOrEdge, ...],
    retain_graph: bool,
    create_graph: bool,
) -> tuple[Tensor | None, ...]:
    import rushlight_autograd.batching  # noqa: F401  (prints batched tensors, and warns of slow paths)

    rows = [g for g in grads or () if g is not None]
    if not rows or len({g.shape[0] if g.dim() else None for g in rows}) != 1 or not rows[0].dim():
        raise RuntimeError(
            "grad(is_grads_batched=True): the tensors of grad_outputs must have the same first dimension, got shapes "
            f"{[tuple(g.shape) for g in rows]}"
        )
    _open_batch(rows[0].shape[0], 0, True)
    try:
        vectors = [g if g is None else _batch(g, 0) for g in grads or ()]
        found = _run_backward(outputs, vectors, inputs, retain_graph, create_graph, False)
        return tuple(g if g is None else _unbatch(g, 0) for g in found)
    finally:
        _close_batch()


def _described(item: TensorOrEdge) -> str:
    return f"shape {tuple(item.shape)}" if isinstance(item, Tensor) else f"result of {item.node.name()}"
