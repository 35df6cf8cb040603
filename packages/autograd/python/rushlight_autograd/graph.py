"""The recorded graph: looking at it, drawing it, and what stands in it for the tensors that it saves."""

from __future__ import annotations

import functools
from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
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
        """What an operator recorded: `tensor.grad_fn`, or the context of a `Function`.

        `name()` says which operator, `next_functions` where the gradients go, `metadata` is a dict for whatever a program
        wants to remember, `site` the line that recorded it. `register_hook(fn(grad_inputs, grad_outputs))` and
        `register_prehook(fn(grad_outputs))` watch it; `_saved_<argument>` shows what it saved.
        """

    Node.register(_C.Node)
    Node.register(_C.FunctionCtx)


class GradientEdge(NamedTuple):
    """A place in the graph where a gradient arrives: that of result `output_nr` of `node`.

    `grad` and `backward` take it in a tensor's place, so that the tensor itself need not be kept.
    """

    node: Node | _C.FunctionCtx
    output_nr: int
    ownership_token: Node | None = None
    """Keeps the graph alive where `node` is the context of a Function, which its node owns."""


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of `tensor` arrives. Raises RuntimeError when it does not require grad."""
    return GradientEdge(*_gradient_edge(tensor))


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Says that the tensor's memory was written by other means than operators, so that a saved tensor that it was is found.

    Tensors made in inference mode have no such check, and are passed over.
    """
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _increment_version(one)


class saved_tensors_hooks:  # noqa: N801
    """Inside, every tensor that an operator saves for its gradient goes through `pack_hook`, and what that returns is
    kept in its place; `unpack_hook` makes the tensor of it again, when and as often as the gradient needs it.

    `pack_hook(tensor)` gets a tensor without history and may return anything. What `unpack_hook(packed)` returns must have
    its shape and dtype. Hooks nest; the innermost alone is called, on the thread that entered it.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _push_saved_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """Inside, saved tensors wait in the memory of the CPU, pinned if `pin_memory`; those that are there stay as they are."""

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
    """Inside, entering `saved_tensors_hooks` on this thread raises RuntimeError with this text. So does entering this where
    such hooks are on already."""
    before = _disable_saved_hooks(error_message)
    try:
        yield
    finally:
        _disable_saved_hooks(before)


def allow_mutation_on_saved_tensors() -> AbstractContextManager[SavedBook]:
    """Inside, on this thread, writing a tensor that was saved for the backward pass is no error: what the graph needs is
    copied right before the first write, and only then.

    The backward pass may run inside or afterwards; a write after the block is an error again. The object that is yielded
    counts the `copies`. Blocks do not nest: RuntimeError.
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
    """Draw the graph behind `outputs`, from the leaves at the top to the outputs, as the text of an SVG image.

    `params` names tensors, as `module.named_parameters()` does. With `show_saved`, what each node has saved is drawn beside
    it. The mouse over a node shows the line that recorded it. Raises ValueError for an output without a graph, and for a
    graph of more than `max_nodes` nodes.
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
    """Return the graph that `to_svg` draws, in Graphviz's language."""
    from rushlight_autograd import _drawing

    return _drawing.to_dot(_drawing.Graph(outputs, params, show_saved, max_nodes))


class _Removable(Protocol):
    def remove(self) -> None: ...


class _Handles:
    """Takes off several hooks at once."""

    def __init__(self, handles: Iterable[_Removable]) -> None:
        self._handles = tuple(handles)

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[[Sequence[Tensor | None]], None] | Callable[[Tensor], None],
    *,
    mode: Literal["all", "any"] = "all",
) -> _Handles:
    """Call `fn` once in each backward pass, when the gradients of several tensors are known.

    mode "all": with a list of the gradients, once all are there that this pass computes; None for the others. A tensor
    that the pass does not reach, or has no use for, is not waited for. mode "any": with the first gradient that is known.
    What `fn` returns is not looked at. The handle's `remove()` takes the hook off all tensors.

    Raises RuntimeError where a tensor does not require grad (mode "any" passes it over).
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook(mode): must be 'all' or 'any', not {mode!r}")
    watch = _watch_all if mode == "all" else _watch_any
    return _Handles(watch(list(tensors), fn))


def _watch_all(tensors: list[Tensor], fn: Callable[..., None]) -> list[_Removable]:
    import threading

    nodes = [get_gradient_edge(t).node for t in tensors]
    lock = threading.Lock()
    passes: dict[int, tuple[list[Tensor | None], list[int]]] = {}  # gradients, and how many are to come

    def hook(index: int, grad: Tensor) -> None:
        number = _pass_id()
        with lock:
            if number not in passes:
                # A pass that raised never came to an end; its number does not come again.
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
