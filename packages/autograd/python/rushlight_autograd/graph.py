"""Functions that inspect and draw the autograd graph, and that change how it saves tensors."""

from __future__ import annotations

import functools
from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from rushlight_autograd import _C
from rushlight_autograd._C import (
    RemovableHandle,
    _disable_saved_hooks,
    _gradient_edge,
    _increment_version,
    _pass_id,
    _pass_runs,
    _pop_saved_hooks,
    _push_saved_hooks,
)
from rushlight_core import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "RemovableHandle",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "to_dot",
    "to_svg",
]

if TYPE_CHECKING:
    from rushlight_autograd._C import Node
    from rushlight_autograd._mutation import SavedBook
else:

    class Node(ABC):  # noqa: B024
        """The record of an operator in the graph: `tensor.grad_fn`, or the context of a `Function`.

        `name()` is the operator's name, `next_functions` contains a pair (node, output number) for each input
        gradient, `metadata` is a dict in which a program can store objects, and `site` is the source line
        that called the operator. `register_hook(fn(grad_inputs, grad_outputs))` and
        `register_prehook(fn(grad_outputs))` register hooks; `_saved_<argument>` returns a saved tensor.
        """

    Node.register(_C.Node)
    Node.register(_C.FunctionCtx)


class GradientEdge(NamedTuple):
    """An edge of the graph: through this edge, `node` receives the gradient of its output number `output_nr`.

    `grad` and `backward` accept a `GradientEdge` in place of a tensor, so that the tensor itself can be
    deleted.

    Example:
        >>> x = torch.ones(1, requires_grad=True)
        >>> y = x * 2
        >>> edge = torch.autograd.graph.get_gradient_edge(y)
        >>> torch.autograd.grad((y * 3).sum(), edge)
        (tensor([3.]),)
    """

    node: Node | _C.FunctionCtx
    output_nr: int
    ownership_token: Node | None = None
    """Keeps the graph alive if `node` is the context of a Function, which does not own its node."""


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the :class:`GradientEdge` of a tensor: the edge through which the graph receives the tensor's gradient.

    Args:
        tensor: the tensor, of any shape.

    Raises:
        RuntimeError: the tensor does not require grad.

    Example:
        >>> x = torch.ones(1, requires_grad=True)
        >>> torch.autograd.graph.get_gradient_edge(x.exp()).output_nr
        0
    """
    return GradientEdge(*_gradient_edge(tensor))


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Record that something other than an operator changed a tensor's memory.

    If an operator saved the tensor for its gradient before this call, the backward pass of the operator
    raises an error. Tensors made in inference mode are ignored, because backward passes do not check them.

    Args:
        tensor: the tensor or tensors, of any shape.

    Example:
        >>> x = torch.ones(2)
        >>> torch.autograd.graph.increment_version(x)
        >>> x._version
        1
    """
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _increment_version(one)


class saved_tensors_hooks:  # noqa: N801
    """A context manager within which `pack_hook` packs each tensor that an operator saves for gradients.

    The result of `pack_hook(tensor)` is stored in place of the tensor. Each time that a backward pass needs
    the tensor, `unpack_hook(packed)` converts the stored object to a tensor of the same shape and dtype.
    If contexts are nested, only the hooks of the innermost context are called. Hooks apply to operators on
    the thread that entered the context manager.

    Args:
        pack_hook: a function that receives a detached tensor and may return any object.
        unpack_hook: a function that receives the packed object and returns the tensor.

    Shape:
        - The tensor that `unpack_hook` returns has the shape of the packed tensor.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
        ...     y = x.exp()
        >>> y.sum().backward()  # with the result of exp in half precision
        >>> x.grad.dtype
        torch.float32
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _push_saved_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *_: object) -> None:
        _pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """A context manager within which the tensors that operators save for gradients are stored in CPU memory.

    Args:
        pin_memory: whether to use pinned memory.
        device_type: accepted for compatibility.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.save_on_cpu():
        ...     y = x.exp()
        >>> y.sum().backward()
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            if tensor.device.type == "cpu":
                return tensor.device, tensor
            copy = tensor.to("cpu")
            return tensor.device, copy.pin_memory() if pin_memory else copy

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Return a context manager within which entering `saved_tensors_hooks` on this thread raises RuntimeError.

    Args:
        error_message: the text of the error.

    Raises:
        RuntimeError: this thread is already inside `saved_tensors_hooks`.

    Example:
        >>> with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
        ...     with torch.autograd.graph.save_on_cpu():
        ...         pass
        Traceback (most recent call last):
            ...
        RuntimeError: no hooks here
    """
    before = _disable_saved_hooks(error_message)
    try:
        yield
    finally:
        _disable_saved_hooks(before)


def allow_mutation_on_saved_tensors() -> AbstractContextManager[SavedBook]:
    """Return a context manager within which tensors that were saved for the backward pass may be changed in place.

    A tensor that the graph needs is copied immediately before it is first changed in place. The backward pass
    may run inside or after the block. If a saved tensor is changed in place after the block, the backward
    pass raises an error, as usual.
    The context manager yields an object whose attribute `copies` is the number of copies that were made.

    Raises:
        RuntimeError: `allow_mutation_on_saved_tensors` blocks are nested.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x.exp()
        ...     z = y.sum()
        ...     _ = y.detach().zero_()
        ...     z.backward()
        >>> x.grad
        tensor([2.7183, 2.7183])
    """
    from rushlight_autograd import _mutation

    return _mutation.allow_mutation_on_saved_tensors()


Names = Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]


def to_svg(
    outputs: Tensor | Iterable[Tensor],
    params: Names | None = None,
    *,
    show_saved: bool = False,
    max_nodes: int = 2000,
) -> str:
    """Return an SVG image of the graph that computed `outputs`, with the leaves at the top.

    Args:
        outputs: a tensor or several, of any shape.
        params: names of tensors, as `module.named_parameters()` yields them.
        show_saved: also draw the tensors that each node has saved.
        max_nodes: the largest number of nodes that may be drawn.

    Raises:
        TypeError: an output is not a tensor.
        ValueError: an output has no graph, or the graph has more than `max_nodes` nodes.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> svg = torch.autograd.graph.to_svg(model(torch.ones(1, 2)), model.named_parameters())
        >>> svg.startswith("<svg"), "weight" in svg
        (True, True)
    """
    from rushlight_autograd import _drawing

    return _drawing.to_svg(_drawing.Graph(outputs, params, show_saved, max_nodes))


def to_dot(
    outputs: Tensor | Iterable[Tensor],
    params: Names | None = None,
    *,
    show_saved: bool = False,
    max_nodes: int = 100_000,
) -> str:
    """Return the source text from which Graphviz draws the graph that computed `outputs`.

    Args:
        outputs, params, show_saved, max_nodes: as for :func:`to_svg`; outputs have any shape.

    Raises:
        TypeError: an output is not a tensor.
        ValueError: an output has no graph, or the graph has more than `max_nodes` nodes.

    Example:
        >>> y = torch.ones(2, requires_grad=True).exp()
        >>> torch.autograd.graph.to_dot(y).startswith("digraph")
        True
    """
    from rushlight_autograd import _drawing

    return _drawing.to_dot(_drawing.Graph(outputs, params, show_saved, max_nodes))


class _Removable(Protocol):
    def remove(self) -> None: ...


class _Handles:
    """A handle that removes several hooks together."""

    def __init__(self, handles: Iterable[_Removable]) -> None:
        self._handles = tuple(handles)

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[[Sequence[Tensor | None]], None] | Callable[[Tensor], None],
    *,
    mode: Literal["all", "any"] = "all",
) -> _Handles:
    """Register a hook that is called once in each backward pass, when the gradients of several tensors are known.

    Args:
        tensors: the tensors.
        fn: the function; its result is ignored.
        mode: "all" calls `fn` with a list of gradients when all gradients that the pass computes are known; the list
            contains None for tensors whose gradient the pass does not compute. "any" calls `fn` with the first gradient that
            is known.

    Returns:
        a handle whose `remove()` removes the hook from all tensors.

    Shape:
        - Gradients: the shapes of their tensors.

    Raises:
        RuntimeError: `mode` is "all", and a tensor does not require grad. (Mode "any" ignores such tensors.)
        ValueError: `mode` is unknown.

    Example:
        >>> x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
        >>> handle = torch.autograd.graph.register_multi_grad_hook([x, y], lambda grads: print(grads))
        >>> (2 * x + 3 * y).backward()
        [tensor([2.]), tensor([3.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook(mode): must be 'all' or 'any', not {mode!r}")
    watch = _watch_all if mode == "all" else _watch_any
    return _Handles(watch(list(tensors), fn))


def _watch_all(tensors: list[Tensor], fn: Callable[..., None]) -> list[_Removable]:
    import threading

    nodes = [get_gradient_edge(t).node for t in tensors]
    lock = threading.Lock()
    passes: dict[int, tuple[list[Tensor | None], list[int]]] = {}  # gradients, number still missing

    def hook(index: int, grad: Tensor) -> None:
        number = _pass_id()
        with lock:
            if number not in passes:
                # Remove entries of passes that raised an error. Numbers of passes are not reused.
                if len(passes) > 64:
                    passes.pop(next(iter(passes)))
                passes[number] = ([None] * len(tensors), [sum(map(_pass_runs, nodes))])
            grads, rest = passes[number]
            grads[index] = grad
            rest[0] -= 1
            if rest[0] > 0:
                return
            del passes[number]
        fn(grads)

    return [t.register_hook(functools.partial(hook, i)) for i, t in enumerate(tensors)]


def _watch_any(tensors: list[Tensor], fn: Callable[..., None]) -> list[_Removable]:
    import threading

    lock = threading.Lock()
    seen: dict[int, None] = {}

    def hook(grad: Tensor) -> None:
        number = _pass_id()
        with lock:
            if number in seen:
                return
            seen[number] = None
            if len(seen) > 64:
                seen.pop(next(iter(seen)))
        fn(grad)

    return [t.register_hook(hook) for t in tensors if t.requires_grad]
