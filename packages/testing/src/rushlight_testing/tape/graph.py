"""The recorded graph, and the connections between tensors and its nodes."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core.seams.stages import get_state, set_computed, set_state

Gradients = list["Tensor | None"]
Hooks = dict[int, Callable[[Tensor], Any]]  # in the order in which they were registered
Keep = Callable[[Tensor], None]
_sequence = itertools.count(1)


class Edge:
    """The destination of a gradient: the `index`-th result of a node."""

    node: Node
    index: int

    __slots__ = ("index", "node")

    def __init__(self, node: Node, index: int = 0) -> None:
        self.node, self.index = node, index


class Node:
    """A node of the graph, which computes the gradients of arguments from the gradients of results."""

    title: str
    edges: list[Edge | None]
    num_results: int

    __slots__ = (
        "__weakref__",
        "edges",
        "num_results",
        "released",
        "retained",
        "sequence",
        "tensor_hooks",
        "title",
    )

    def __init__(self, title: str, edges: Sequence[Edge | None], num_results: int = 1) -> None:
        self.title, self.edges, self.num_results = title, list(edges), num_results
        self.sequence: int = next(
            _sequence
        )  # a node is younger than the nodes that its edges lead to, which are created first
        self.released: bool = False
        self.tensor_hooks: dict[int, Hooks] = {}  # by the index of the result
        self.retained: list[tuple[int, Keep]] = []  # set by retain_grad(), and called after all tensor_hooks

    def name(self) -> str:
        return self.title

    def apply(self, grads: Gradients) -> Gradients:
        raise NotImplementedError

    def release(self) -> None:
        self.released = True

    def check_not_released(self) -> None:
        if self.released:
            raise RuntimeError(
                f"backward(): the graph of this output was used already, and the tensors saved by {self.title} were freed\n"
                "hint: pass retain_graph=True to the first backward() if you need a second one"
            )


class State:
    """The autograd state of a tensor, such as the node that computed it.

    For the base tensor of views (the root), `generation` counts the in-place modifications, each of which
    gave the tensor a new node. For a view, `generation` is the count of its base when the view got its node.
    """

    node: Node | None
    index: int
    generation: int

    __slots__ = ("accumulator", "generation", "hooks", "index", "node", "post_accumulate", "retained")

    def __init__(self, node: Node | None = None, index: int = 0, generation: int = 0) -> None:
        self.node, self.index, self.generation = node, index, generation
        self.accumulator: weakref.ref[Accumulate] | None = None
        self.hooks: Hooks = {}  # only for leaves, like post_accumulate
        self.post_accumulate: Hooks = {}
        self.retained: Keep | None = None


def state_of(t: Tensor) -> State:
    state = get_state(t)
    if state is None:
        state = State()
        set_state(t, state)
    return state


class Accumulate(Node):
    """The node of a leaf, which adds gradients to the leaf's `grad`."""

    __slots__ = ("variable",)

    def __init__(self, variable: Tensor) -> None:
        super().__init__("AccumulateGrad", [])
        self.variable: Tensor = variable
        self.tensor_hooks[0] = state_of(variable).hooks

    def apply(self, grads: Gradients) -> Gradients:
        (grad,) = grads
        if grad is not None:
            old = self.variable.grad
            self.variable.grad = grad.clone() if old is None else old + grad
            for hook in list(state_of(self.variable).post_accumulate.values()):
                hook(self.variable)
        return []

    def release(self) -> None:
        pass


class NotDifferentiable(Node):
    """The node of an operator without a derivative. The node raises an error in the backward pass."""

    __slots__ = ()

    def apply(self, grads: Gradients) -> Gradients:
        raise RuntimeError(f"backward(): the derivative of '{self.title}' is not implemented")


class Overwritten(Node):
    """The node of an in-place comparison or logical operator, such as `eq_`. Its gradient is zero."""

    __slots__ = ()

    def apply(self, grads: Gradients) -> Gradients:
        return [None if grads[0] is None else core.zeros_like(grads[0])]


class Saved:
    """A tensor that a node saved.

    If the tensor is a result of the node, it is saved detached, because its reference to the node would keep
    the node alive. `unpack` restores this reference.
    """

    version: int
    index: int | None

    __slots__ = ("index", "tensor", "version")

    tensor: Tensor

    def __init__(self, tensor: Tensor, index: int | None = None) -> None:
        self.tensor, self.version, self.index = tensor, tensor._version, index
        if index is not None:
            self.tensor = tensor.detach()

    def unpack(self, node: Node) -> Tensor:
        if self.tensor._version != self.version:
            raise RuntimeError(
                f"backward(): a tensor of shape {tuple(self.tensor.shape)} that {node.title} needs was changed in place "
                f"after it was saved: it is at version {self.tensor._version}, version {self.version} was saved\n"
                "hint: use the out-of-place form of the operator that wrote it, or clone() it before the write"
            )
        if self.index is None or not (self.tensor.is_floating_point() or self.tensor.is_complex()):
            return self.tensor
        result = self.tensor.detach()
        set_computed(result, State(node, self.index))
        return result


# --- views: Note [Views and their root] of rushlight/tensor.h ---


class Window:
    """The positions of a view's elements in its base tensor (the root).

    `fresh` allocates a 1-d tensor. On this tensor, `whole` returns a view with the shape and strides of the root, and `part`
    returns a view with the shape and strides of the view, at its position in the root. If only one of root and view is
    complex, the 1-d tensor is real.
    """

    root: tuple[tuple[int, ...], tuple[int, ...]]
    view: tuple[tuple[int, ...], tuple[int, ...]]

    def __init__(self, root: Tensor, view: Tensor) -> None:
        self.mixed: bool = root.is_complex() != view.is_complex()
        self.root_complex: bool = self.mixed and root.is_complex()
        self.view_complex: bool = self.mixed and view.is_complex()
        self.root, begin = _geometry(root, self.root_complex)
        self.view, first = _geometry(view, self.view_complex)
        self.offset: int = first - begin
        ends = [
            sum((n - 1) * s for n, s in zip(*geometry, strict=True)) for geometry in (self.root, self.view)
        ]
        self.extent: int = max(ends[0], ends[1] + self.offset) + 1

    def fresh(self, like: Tensor) -> Tensor:
        dtype = like.real.dtype if self.mixed else like.dtype
        return core.zeros(self.extent, dtype=dtype, device=like.device)

    def whole(self, flat: Tensor) -> Tensor:
        seen = flat.as_strided(*self.root, 0)
        return core.view_as_complex(seen) if self.root_complex else seen

    def part(self, flat: Tensor) -> Tensor:
        seen = flat.as_strided(*self.view, self.offset)
        return core.view_as_complex(seen) if self.view_complex else seen


def _geometry(t: Tensor, as_pairs: bool) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], int]:
    """Return the shape, strides and offset of a tensor.

    With `as_pairs`, a complex tensor is treated as a tensor of pairs of real numbers."""
    if not as_pairs:
        return (tuple(t.shape), t.stride()), t.storage_offset()
    return ((*t.shape, 2), (*(2 * s for s in t.stride()), 1)), 2 * t.storage_offset()


class ViewOfRoot(Node):
    """The node of a view, which places the view's gradient at its positions in the gradient of the base."""

    __slots__ = ("window",)

    def __init__(self, root: Tensor, view: Tensor) -> None:
        super().__init__("AsStridedBackward0", [edge_of(root)])
        self.window: Window = Window(root, view)

    def apply(self, grads: Gradients) -> Gradients:
        (grad,) = grads
        if grad is None:
            return [None]
        flat = self.window.fresh(grad)
        self.window.part(flat).add_(grad)
        return [self.window.whole(flat)]


class WriteThroughView(Node):
    """The node that a base tensor gets when an in-place operator modifies it through a view.

    The operator's node receives the part of the base's gradient that is at the view's positions."""

    window: Window
    write: Node
    index: int

    __slots__ = ("index", "window", "write")

    def __init__(self, root: Tensor, view: Tensor, write: Node, index: int) -> None:
        # The view's old value is a part of the old root, so the operator's edge to it is left out.
        super().__init__("CopySlices", [edge_of(root), *write.edges[1:]])
        self.window, self.write, self.index = Window(root, view), write, index

    def apply(self, grads: Gradients) -> Gradients:
        (grad,) = grads
        if grad is None:
            return [None] * len(self.edges)
        flat = self.window.fresh(grad)
        self.window.whole(flat).copy_(grad)
        part = self.window.part(flat)
        given: Gradients = [None] * self.write.num_results
        given[self.index] = part.clone()
        first, *rest = self.write.apply(given)
        part.zero_() if first is None else part.copy_(first)
        return [self.window.whole(flat), *rest]

    def release(self) -> None:
        super().release()
        self.write.release()


# --- tensors ---


def history_of(t: Tensor) -> State | None:
    """Return the state of a computed tensor, or None for a leaf. The state contains the node that computed the tensor.

    If the base of a view was modified in place after the view got its node, the view gets a new node."""
    if not t.requires_grad:
        return None
    root = t._base
    if root is not None and root.requires_grad:
        state, generation = state_of(t), state_of(root).generation
        if state.node is None or state.generation != generation:
            _replace_history(t, ViewOfRoot(root, t), 0, generation)
    state = get_state(t)
    return state if state is not None and state.node is not None else None


def edge_of(t: Any) -> Edge | None:
    """Return the edge to the node that receives the gradient of `t`, or None if `t` does not require grad."""
    if not isinstance(t, Tensor) or not t.requires_grad:
        return None
    history = history_of(t)
    if history is not None and history.node is not None:
        return Edge(history.node, history.index)
    state = state_of(t)
    node = state.accumulator() if state.accumulator else None
    if node is None:
        node = Accumulate(t)
        state.accumulator = weakref.ref(node)
    return Edge(node)


def set_history(t: Any, node: Node, index: int = 0) -> None:
    """Record that `t` is the `index`-th result of the operator whose node is `node`."""
    if not isinstance(t, Tensor) or not (t.is_floating_point() or t.is_complex()):
        return
    root = t._base
    generation = 0 if root is None else state_of(root).generation
    set_computed(t, State(node, index, generation))


def check_inplace(name: str, t: Tensor) -> None:
    """Raise RuntimeError if an in-place operator on `t` cannot be recorded."""
    leaf, root = t.is_leaf and t.requires_grad, t._base
    of_leaf = root is not None and root.is_leaf and root.requires_grad
    if leaf or of_leaf:
        raise RuntimeError(
            f"{name}: a leaf that requires grad{'' if leaf else ' (the base of this view)'} cannot be written in place "
            "while gradients are recorded\nhint: wrap the write in torch.no_grad(), or write to a clone()"
        )


def rebase_history(t: Tensor, node: Node, index: int = 0) -> None:
    """Record that the in-place operator whose node is `node` has modified `t`."""
    root = t._base
    if root is None:
        _replace_history(t, node, index, state_of(t).generation + 1)
    else:
        write = WriteThroughView(root, t, node, index)
        _replace_history(root, write, 0, state_of(root).generation + 1)
        state_of(t)


def _replace_history(t: Tensor, node: Node, index: int, generation: int) -> None:
    """Replace the node of a tensor.

    If `retain_grad` was called for the tensor, the setting moves to the new node; hooks stay on the old node."""
    former, state = state_of(t), State(node, index, generation)
    if former.retained is not None:
        if former.node is not None:
            former.node.retained.remove((former.index, former.retained))
        retain(state, former.retained)
    set_computed(t, state)


def retain(state: State, keep: Keep) -> None:
    """Call `keep` in the backward pass with the gradient of a computed tensor, after all hooks of this tensor."""
    assert state.node is not None
    state.retained = keep
    state.node.retained.append((state.index, keep))
