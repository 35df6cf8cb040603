"""Make a process compute gradients with the tape, and run backward passes."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor, enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from rushlight_core.codegen.derivatives import load_derivatives
from rushlight_core.codegen.loader import load_ops
from rushlight_core.seams.stages import provide_stage, provide_state
from rushlight_testing.tape import hooks
from rushlight_testing.tape.function import Function, FunctionCtx
from rushlight_testing.tape.graph import Accumulate, Edge, Gradients, Node, edge_of, history_of
from rushlight_testing.tape.record import Recorder

# The names that `rushlight.autograd` has with this provider.
__all__ = [
    "Function",
    "FunctionCtx",
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]

TensorOrTensors = Tensor | Sequence[Tensor]


def attach(derivatives: Path) -> None:
    """Make this process record operators and compute gradients with the tape.

    Args:
        derivatives: a folder of YAML files with derivative formulas, in the format of rushlight-autograd.

    Raises:
        RuntimeError: the tape, or a package such as rushlight-autograd, already computes gradients in this
            process.

    Example::

        import rushlight_testing.tape.attached  # attaches the tape with the installed formulas
    """
    ops = load_ops()
    recorder = Recorder(ops, load_derivatives(derivatives, ops))
    provide_state()
    provide_stage("autograd", recorder)
    for owner, name, value in (
        (core, "autograd", sys.modules[__name__]),
        (Tensor, "backward", _method),
        (Tensor, "grad_fn", property(_grad_fn)),
        (Tensor, "register_hook", hooks.register_hook),
        (Tensor, "register_post_accumulate_grad_hook", hooks.register_post_accumulate_grad_hook),
        (Tensor, "retain_grad", hooks.retain_grad),
        (Tensor, "retains_grad", property(hooks.retains_grad)),
    ):
        setattr(owner, name, value)


def backward(
    tensors: TensorOrTensors,
    grad_tensors: TensorOrTensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: TensorOrTensors | None = None,
) -> None:
    """Compute gradients of `tensors` with respect to the leaves, and add them to the `grad` of the leaves.

    Args:
        tensors: the tensors to differentiate.
        grad_tensors: the gradients of `tensors`; may be omitted for tensors of one element.
        retain_graph: whether to keep the graph for another pass; by default the value of `create_graph`.
        create_graph: whether to record the computation of the gradients, so that they can be differentiated.
        inputs: the tensors whose `grad` is accumulated; by default all leaves.

    Shape:
        - Inputs: each of `grad_tensors` has the shape (*) of its tensor.

    Raises:
        RuntimeError: a tensor does not require grad, its gradient is missing or has another shape, or the
            graph was released.

    Example::

        x = torch.ones(2, requires_grad=True)
        backward((x * x).sum())
        x.grad  # tensor([2., 2.])
    """
    keep = create_graph if retain_graph is None else retain_graph
    _run(_tuple(tensors), _tuple(grad_tensors), _tuple(inputs), keep, create_graph, accumulate=True)


def grad(
    outputs: TensorOrTensors,
    inputs: TensorOrTensors,
    grad_outputs: TensorOrTensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the sum of `outputs`, weighted by `grad_outputs`, with respect to each of `inputs`.

    Args:
        outputs: the tensors to differentiate.
        inputs: the tensors whose gradients are returned.
        grad_outputs: the gradients of `outputs`; may be omitted for tensors of one element.
        retain_graph: whether to keep the graph for another pass; by default the value of `create_graph`.
        create_graph: whether to record the computation of the gradients, so that they can be differentiated.
        allow_unused: whether the gradient of an unused input is None. If False, an unused input raises an error.
        materialize_grads: whether the gradient of an unused input is a tensor of zeros.

    Shape:
        - Output: for each input, a tensor of the same shape.

    Raises:
        RuntimeError: an input or an output does not require grad, or an input was not used.

    Example::

        x = torch.ones(2, requires_grad=True)
        grad((x * x).sum(), x)  # (tensor([2., 2.]),)
    """
    keep = create_graph if retain_graph is None else retain_graph
    wanted = _tuple(inputs)
    result = _run(_tuple(outputs), _tuple(grad_outputs), wanted, keep, create_graph, accumulate=False)
    if materialize_grads:
        return tuple(core.zeros_like(x) if g is None else g for g, x in zip(result, wanted, strict=True))
    for i, g in enumerate(result):
        if g is None and not allow_unused:
            raise RuntimeError(
                f"grad(): input {i} (shape {tuple(wanted[i].shape)}) was not used to compute the outputs\n"
                "hint: pass allow_unused=True to get None for it"
            )
    return tuple(result)


def _method(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: TensorOrTensors | None = None,
) -> None:
    backward(self, gradient, retain_graph, create_graph, inputs)


def _grad_fn(self: Tensor) -> Node | None:
    history = history_of(self)
    return None if history is None else history.node


def _tuple(value: TensorOrTensors | None) -> tuple[Any, ...]:
    return () if value is None else (value,) if isinstance(value, Tensor) else tuple(value)


# --- the pass ---


def _run(
    outputs: tuple[Tensor, ...],
    grads: tuple[Tensor | None, ...],
    inputs: tuple[Tensor, ...],
    retain_graph: bool,
    create_graph: bool,
    accumulate: bool,
) -> Gradients:
    if grads and len(grads) != len(outputs):
        raise RuntimeError(
            f"backward(): expected one gradient for each of the {len(outputs)} outputs, "
            f"got {len(grads)} gradients"
        )
    with core.set_grad_enabled(create_graph):
        roots = [
            (_root(i, output), _seed(i, output, grads[i] if grads else None))
            for i, output in enumerate(outputs)
        ]
        ends = [edge_of(t) for t in inputs]
        for i, end in enumerate(ends):
            if end is None:
                raise RuntimeError(
                    f"grad(): input {i} (shape {tuple(inputs[i].shape)}) does not require grad"
                )
        chosen = _leading_to([edge.node for edge, _ in roots], ends) if inputs else None
        return _pass(roots, ends, chosen, retain_graph, accumulate)


def _root(i: int, output: Tensor) -> Edge:
    edge = edge_of(output)
    if edge is None:
        raise RuntimeError(
            f"backward(): output {i} (shape {tuple(output.shape)}) does not require grad and has no history\n"
            "hint: compute it from tensors that require grad, outside of no_grad, and without detach()"
        )
    return edge


def _seed(i: int, output: Tensor, grad: Tensor | None) -> Tensor:
    if grad is None:
        if output.numel() != 1:
            raise RuntimeError(
                "backward(): grad can be created implicitly only for outputs of one element, "
                f"output {i} has shape {tuple(output.shape)}\n"
                "hint: reduce the output with sum() or mean(), or pass gradient="
            )
        if output.is_complex():
            raise RuntimeError(
                f"backward(): grad can be created implicitly only for real outputs, output {i} is {output.dtype}\n"
                "hint: take abs() or the real part of the output, or pass gradient="
            )
        return core.ones_like(output.detach())
    if grad.shape != output.shape:
        raise RuntimeError(
            f"backward(): the gradient of output {i} has shape {tuple(grad.shape)}, "
            f"but the output has shape {tuple(output.shape)}"
        )
    return grad


def _leading_to(roots: list[Node], ends: list[Edge | None]) -> set[Node]:
    """Return the nodes that a backward pass from `roots` must run to compute gradients at edges `ends`."""
    seen, waiting = set(roots), list(roots)
    while waiting:
        for edge in waiting.pop().edges:
            if edge and edge.node not in seen:
                seen.add(edge.node)
                waiting.append(edge.node)
    captured = {edge.node for edge in ends if edge}
    chosen: set[Node] = set()
    # A node is younger than the nodes that its edges lead to. The accumulator of a leaf has no edges.
    for node in sorted(seen, key=_age):
        if any(edge and (edge.node in chosen or edge.node in captured) for edge in node.edges):
            chosen.add(node)
    return chosen


def _age(node: Node) -> int:
    return node.sequence if node.edges else 0


def _pass(
    roots: list[tuple[Edge, Tensor]],
    ends: list[Edge | None],
    chosen: set[Node] | None,
    retain_graph: bool,
    accumulate: bool,
) -> Gradients:
    arrived: dict[Node, Gradients] = {}
    queue: list[tuple[int, int, Node]] = []
    captures: Gradients = [None] * len(ends)

    def deliver(edge: Edge, grad: Tensor) -> None:
        if edge.node not in arrived:
            arrived[edge.node] = [None] * edge.node.num_results
            heapq.heappush(queue, (-_age(edge.node), -edge.node.sequence, edge.node))
        slots = arrived[edge.node]
        old = slots[edge.index]
        slots[edge.index] = grad if old is None else old + grad

    for edge, seed in roots:
        deliver(edge, seed)
    while queue:
        *_, node = heapq.heappop(queue)
        grads = arrived.pop(node)
        captured = any(end is not None and end.node is node for end in ends)
        if chosen is None or node in chosen or captured:
            hooks.run_hooks(node, grads)
        for i, end in enumerate(ends):
            if end is not None and end.node is node:
                captures[i] = grads[end.index]
        leaf = isinstance(node, Accumulate)
        runs = accumulate and (captured or chosen is None) if leaf else chosen is None or node in chosen
        if not runs:
            continue
        for target, share in zip(node.edges, node.apply(grads), strict=True):
            if target is not None and share is not None:
                deliver(target, share)
        if not retain_graph:
            node.release()
    return captures
