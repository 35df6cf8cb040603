"""Find the Python references and graph edges that keep a tensor alive: `why_alive`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import CellType, CoroutineType, FrameType, FunctionType, GeneratorType, ModuleType
from typing import Any

from rushlight_autograd import _C
from rushlight_core import Tensor

_MOST_STEPS = 6  # the longest path from a variable to the tensor
_MOST_REFERRERS = 200  # the number of referrers that are followed for one object
_MOST_PATHS = 20


class WhyAlive:
    """The references that keep a tensor or its memory alive, as :func:`why_alive` returns them.

    Attributes:
        references: paths from Python variables to the tensor, as strings.
        graph: references from recorded graphs and from other tensors, as strings.

    Shape:
        - Tensors may have any shape.

    Example:
        >>> kept = [torch.zeros(3)]
        >>> report = torch.autograd.why_alive(kept[0])
        >>> bool(report), len(report.graph)
        (True, 0)
    """

    def __init__(self, tensor: Tensor, references: list[str], graph: list[str]) -> None:
        self.references = references
        self.graph = graph
        size = tensor.untyped_storage().nbytes()
        self._title = (
            f"Tensor of shape {tuple(tensor.shape)}, {str(tensor.dtype).rpartition('.')[2]}, {size} bytes"
        )

    def __bool__(self) -> bool:
        return bool(self.references or self.graph)

    def __repr__(self) -> str:
        lines = [f"{self._title}, is kept alive"]
        for title, found in (("by Python", self.references), ("by graphs and other tensors", self.graph)):
            lines.append(f"  {title}:")
            lines += [f"    {line}" for line in found] or ["    nothing"]
        return "\n".join(lines)


def why_alive(tensor: Tensor) -> WhyAlive:
    """Find the references that keep a tensor alive.

    The result lists the variables, elements, attributes and closures that refer to the tensor. The result
    also lists the other tensors that share the tensor's memory, the tensor whose `grad` this tensor is, the
    graphs in which this tensor is a leaf, and the recorded operators that saved this tensor or a view of its
    memory. For each recorded operator, the result shows the line of code that recorded the operator. The
    search takes a while, because it covers all objects that Python's garbage collector tracks and the frames
    of all threads. The search neither changes objects nor keeps them alive. The search does not find
    references that only C extensions hold, or tensors that `saved_tensors_hooks` packed.

    Args:
        tensor: the tensor, of any shape. The variable that was passed as the argument is listed, too.

    Raises:
        TypeError: `tensor` is not a tensor.

    Example:
        >>> x = torch.ones(3, requires_grad=True)
        >>> y = x.exp()  # exp saves its result for the gradient
        >>> len(torch.autograd.why_alive(y).graph) > 0
        True
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"why_alive(tensor): must be a Tensor, not {type(tensor).__name__}")
    frames = _frames(sys._getframe(1))
    world = _World(frames)
    references = world.paths(tensor)
    graph = []
    roots = world.tensors()
    for kind, root, node, name in _C._search_graph(roots, tensor):
        graph.append(_said(kind, node, name, lambda root=root: world.first_path(roots[root])))
    return WhyAlive(tensor, references, list(dict.fromkeys(graph)))


def nodes_above(node: Any) -> list[Any]:
    """Return the nodes that have an edge to `node`, in the graphs of all tensors of the program."""
    world = _World(_frames(sys._getframe(1)))
    return [found[2] for found in _C._search_graph(world.tensors(), node) if found[0] == "edge"]


def _said(kind: str, node: Any, name: str, holder: Any) -> str:
    owner = holder() or "an object that was not found"
    if kind == "view":
        return f"a view of it: {owner}"
    if kind == "memory":
        return f"another tensor that shares its memory: {owner}"
    if kind == "grad":
        return f"it is the grad of {owner}"
    line = f" at {node.site}" if node.site else ""
    if kind == "leaf":
        return f"it is a leaf of the graph of {owner}"
    return f"{node.name()}{line} saved it as {name!r}, in the graph of {owner}"


def _frames(innermost: FrameType) -> list[FrameType]:
    """Return the frames of all threads. For the calling thread, return only the frame `innermost` and its callers."""
    import threading

    found: list[FrameType] = []
    for thread, top in sys._current_frames().items():
        frame: FrameType | None = innermost if thread == threading.get_ident() else top
        while frame is not None:
            found.append(frame)
            frame = frame.f_back
    return found


class _World:
    """The objects and stack frames in which references to an object are searched."""

    def __init__(self, frames: list[FrameType]) -> None:
        self.frames = frames
        self.locals = [(frame, dict(frame.f_locals)) for frame in frames if not _is_module_level(frame)]
        self.hidden = {id(self), id(self.__dict__), id(self.locals), id(frames)}
        self.hidden |= {id(pair) for pair in self.locals} | {id(pair[1]) for pair in self.locals}

    def tensors(self) -> list[Any]:
        """Return all tensors and autograd nodes to which a local variable or an object in memory refers."""
        kinds = (Tensor, _C.Node, _C.FunctionCtx)
        found: dict[int, Any] = {}
        for _, variables in self.locals:
            found.update((id(value), value) for value in variables.values() if isinstance(value, kinds))
        for container in gc.get_objects():
            if isinstance(container, kinds):
                found[id(container)] = container
            for value in gc.get_referents(container):
                if isinstance(value, kinds):
                    found[id(value)] = value
        return list(found.values())

    def first_path(self, target: Any) -> str:
        return next(self._walk(target), "")

    def paths(self, target: Any) -> list[str]:
        found: dict[str, None] = {}
        for path in self._walk(target):
            found[path] = None
            if len(found) == _MOST_PATHS:
                found["…"] = None
                break
        return list(found)

    def _walk(self, target: Any) -> Iterator[str]:
        """Yield the paths from variables to the target, shortest first."""
        layer: list[tuple[Any, str]] = [(target, "")]
        seen = {id(target)}
        for _ in range(_MOST_STEPS):
            following: list[tuple[Any, str]] = []
            for value, rest in layer:
                for frame, variables in self.locals:
                    for name, held in variables.items():
                        if held is value:
                            yield f"variable {name}{rest} of {_named(frame)}"
                referrers = gc.get_referrers(value)
                for referrer in referrers[:_MOST_REFERRERS]:
                    if self._is_ours(referrer) or referrer is referrers or referrer is layer:
                        continue
                    for found, next_rest in self._steps(referrer, value, rest):
                        if isinstance(found, str):
                            yield found
                        elif id(found) not in seen and not self._is_ours(found):
                            seen.add(id(found))
                            following.append((found, next_rest))
            layer = following
            self.hidden |= {id(layer), *map(id, layer)}

    def _is_ours(self, value: Any) -> bool:
        if id(value) in self.hidden or isinstance(value, FrameType):
            return True
        # The value is a pair that this module made.
        return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], FrameType)

    def _steps(self, referrer: Any, value: Any, rest: str) -> Iterator[tuple[Any, str]]:
        """Yield the objects through which `referrer` refers to `value`, with their paths to the tensor.

        `rest` is the path from `value` to the tensor, such as ".weight". If `referrer` is the scope of a
        variable that refers to `value`, yield the path that begins with the name of the variable, and an
        empty string."""
        if isinstance(referrer, dict):
            names = [key for key, held in referrer.items() if held is value]
            owner = _owner(referrer)
            for name in names[:3]:
                if isinstance(owner, ModuleType):
                    yield f"variable {name}{rest} of module {owner.__name__}", ""
                elif owner is not None:
                    yield owner, f".{name}{rest}"
                else:
                    yield referrer, f"[{name!r}]{rest}"
        elif isinstance(referrer, (list, tuple)):
            at = next((i for i, held in enumerate(referrer) if held is value), None)
            if at is not None:
                yield referrer, f"[{at}]{rest}"
        elif isinstance(referrer, CellType):
            for function in gc.get_referrers(referrer):
                for holder in gc.get_referrers(function) if isinstance(function, tuple) else ():
                    if isinstance(holder, FunctionType) and holder.__closure__ is function and function:
                        name = holder.__code__.co_freevars[function.index(referrer)]
                        yield f"variable {name}{rest} in the closure of {holder.__qualname__}", ""
        elif isinstance(referrer, (GeneratorType, CoroutineType)):
            frame = referrer.gi_frame if isinstance(referrer, GeneratorType) else referrer.cr_frame
            for name, held in frame.f_locals.items() if frame is not None else ():
                if held is value and frame is not None:
                    yield f"variable {name}{rest} of the suspended {_named(frame)}", ""
        elif isinstance(referrer, (set, frozenset)):
            yield referrer, f"{{…}}{rest}"
        elif not isinstance(referrer, ModuleType):
            # An object whose attributes are in slots, or in a dict that the collector does not list.
            for name in _attributes(referrer):
                if _attribute(referrer, name) is value:
                    yield referrer, f".{name}{rest}"
                    break
            else:
                yield referrer, f".<{type(value).__name__}>{rest}"


def _is_module_level(frame: FrameType) -> bool:
    return frame.f_locals is frame.f_globals or frame.f_code.co_name == "<module>"


def _named(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_qualname} ({code.co_filename}:{frame.f_lineno})"


def _owner(attributes: dict[str, Any]) -> Any:
    """Return the module or object whose `__dict__` is `attributes`, or None if there is none."""
    for candidate in gc.get_referrers(attributes):
        if getattr(candidate, "__dict__", None) is attributes:
            return candidate
    return None


def _attributes(value: Any) -> list[str]:
    names = list(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    return names


def _attribute(value: Any, name: str) -> Any:
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return None
