"""Proxies, which represent values while a program is traced. Operations on proxies become nodes."""

from __future__ import annotations

import dis
import enum
import functools
import inspect
import operator
from collections.abc import Callable, Iterator
from types import FrameType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

import rushlight_core as core
from rushlight.fx import traceback
from rushlight.fx.graph import Graph
from rushlight.fx.node import Argument, Node, Target, map_aggregate
from rushlight.fx.operator_schemas import check_for_mutable_operation

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "TraceError",
    "TracerBase",
    "assert_fn",
]

_LITERALS = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    type(...),
    core.dtype,
    core.device,
    core.layout,
)


class TraceError(ValueError):
    """Raised when a traced program needs a value that a trace does not have, such as that of a condition.

    Example:
        >>> torch.fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)
        Traceback (most recent call last):
            ...
        rushlight.fx.proxy.TraceError: ...
    """


def assert_fn(x: object) -> None:
    """Raise AssertionError if `x` is false. A tracer with `trace_asserts` replaces `assert` statements by calls of this
    function.

    Raises:
        AssertionError: `x` is false.

    Example:
        >>> assert_fn(2 > 1)
    """
    if not x:
        raise AssertionError("Assertion failed")


class TracerBase:
    """Base class of tracers: creates nodes, and proxies for their results.

    Attributes:
        graph: the graph to which nodes are added.
        record_stack_traces: whether `node.stack_trace` contains the source line that caused the node.
        check_mutable_operations: whether a call of an operator that modifies an argument in place raises
            RuntimeError.
        traced_func_name: the method of a module that `Tracer.trace` calls.
        trace_asserts: whether `assert proxy` and `assert not proxy` become calls of `assert_fn`, without the message. If
            False, these statements raise TraceError.
        module_stack: the modules whose calls are being traced, outermost first, as a dict from paths to
            tuples of a path and a class. If the dict is not empty, each new node stores a copy of it in
            `node.meta["nn_module_stack"]`.

    Methods raise NotImplementedError for arguments that a graph cannot contain, and TraceError if the value
    of a proxy is needed.

    Example:
        >>> tracer = GraphAppendingTracer(Graph())
        >>> x = tracer.create_proxy("placeholder", "x", (), {})
        >>> (x + 1).node.op
        'call_function'
    """

    graph: Graph
    record_stack_traces: bool = False
    trace_asserts: bool = False
    check_mutable_operations: bool = False
    traced_func_name: str = "forward"
    proxy_buffer_attributes: bool = False

    @functools.cached_property
    def module_stack(self) -> dict[str, tuple[str, Any]]:
        return {}

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node. Tracers may override this method to process every new node."""
        if self.check_mutable_operations and kind == "call_function":
            check_for_mutable_operation(target, args, kwargs)  # type: ignore[arg-type]
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        traceback._add_current_meta(node)
        return node

    def proxy(self, node: Node) -> Proxy:
        """Return a proxy for the result of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node with arguments that may be or contain proxies, and return a proxy for its result."""
        node_args, node_kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, node_args, node_kwargs, name, type_expr)
        if self.module_stack:
            node.meta["nn_module_stack"] = dict(self.module_stack)
        if self.record_stack_traces:
            node.stack_trace = node.stack_trace or _line_of_the_program()
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Argument:
        """Convert `a` to a value that can be an argument of a node.

        Raises NotImplementedError for an object that a graph cannot contain.
        """
        return map_aggregate(a, self._argument)

    def _argument(self, a: Any) -> Argument:
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, (Node, range, enum.Enum, type, *_LITERALS)) or inspect.isroutine(a):
            return a
        raise NotImplementedError(f"fx: a graph cannot hold an argument of type {type(a).__name__}: {a!r}")

    def to_bool(self, obj: Proxy) -> bool:
        """Raise TraceError: `bool(obj)` needs a value."""
        raise TraceError(
            f"fx: '{obj.node}' is used in control flow (if, while, and, or, assert): "
            "symbolically traced variables cannot be used as inputs to control flow\n"
            "hint: make the module a leaf (Tracer.is_leaf_module), wrap the function by fx.wrap, or pass concrete_args"
        )

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Raise TraceError: `iter(obj)` needs a length."""
        raise TraceError(
            f"fx: '{obj.node}' has no length in a trace: Proxy object cannot be iterated\n"
            "hint: wrap the function that loops by fx.wrap, or pass concrete_args"
        )

    def keys(self, obj: Proxy) -> Any:
        """Record a call of the method `keys`, which Python calls first for `**obj`."""
        return Attribute(obj, "keys")()


def _line_of_the_program() -> str | None:
    folder = __file__.rpartition("/")[0]
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(folder):
        frame = frame.f_back
    if frame is None:
        return None
    return f'File "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_name}'


class GraphAppendingTracer(TracerBase):
    """Tracer that adds to an existing graph: operations on `Proxy(node)` become nodes at the graph's insertion point.

    Example:
        >>> graph = Graph()
        >>> tracer = GraphAppendingTracer(graph)
        >>> y = Proxy(graph.placeholder("x"), tracer).relu()
        >>> [node.op for node in graph.nodes]
        ['placeholder', 'call_method']
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """A proxy that represents the result of a node while a program is traced.

    Operators, functions and methods that are applied to the proxy become nodes.

    Args:
        node: the node.
        tracer: the tracer that creates nodes; by default one that adds to the graph of `node`.

    Raises:
        TraceError: the traced program needs the value of the result, for example for a condition, an index or a loop.

    Example:
        >>> graph = Graph()
        >>> x = Proxy(graph.placeholder("x"))
        >>> (x * 2).node.target.__name__
        'mul'
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer: TracerBase = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        if name.startswith("__") and name.endswith("__"):  # Python and libraries check for special methods
            raise AttributeError(f"'Proxy' object has no attribute {name!r}")
        return Attribute(self, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        raise TraceError(f"fx: '{self.node}' is copied, which a trace cannot record\nhint: use clone()")

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = inspect.currentframe()
        caller = frame.f_back if frame else None
        if caller is not None:
            for instruction in dis.get_instructions(caller.f_code):
                if instruction.offset == caller.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
                    return iter([operator.getitem(self, i) for i in range(instruction.argval)])
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        frame = inspect.currentframe()
        if self.tracer.trace_asserts and frame is not None and frame.f_back is not None:
            expected = _asserted(frame.f_back)
            if expected is not None:
                condition = (
                    self
                    if expected
                    else self.tracer.create_proxy("call_function", operator.not_, (self,), {})
                )
                self.tracer.create_proxy("call_function", assert_fn, (condition,), {})
                return expected
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            f"fx: 'len' is not supported in symbolic tracing, called on '{self.node}'\n"
            "hint: call fx.wrap('len') in the module that needs it"
        )

    def keys(self) -> Any:
        """Return the result of the tracer's method `keys`. Python calls this method for `**proxy`."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Proxy:
        found: list[TracerBase] = []

        def look(a: Any) -> Any:
            if isinstance(a, Proxy) and not any(a.tracer is tracer for tracer in found):
                found.append(a.tracer)
            return a

        map_aggregate((args, kwargs or {}), look)
        if len(found) != 1:
            raise RuntimeError(
                f"fx: the proxies among the arguments of {func.__name__} must belong to one trace, "
                f"got {len(found)} different traces"
            )
        if isinstance(func, (MethodDescriptorType, WrapperDescriptorType)):  # e.g. Tensor.view
            return found[0].create_proxy("call_method", func.__name__, args, kwargs or {})
        return found[0].create_proxy("call_function", func, args, kwargs or {})


def _asserted(frame: FrameType) -> bool | None:
    """Return the truth value with which an `assert` succeeds, if the frame is evaluating the condition of this `assert`.

    Return None if the frame is not evaluating such a condition.
    """
    following = [
        instruction
        for instruction in dis.get_instructions(frame.f_code)
        if instruction.offset >= frame.f_lasti
    ]
    names = [instruction.opname for instruction in following[:3] if instruction.opname != "TO_BOOL"]
    if len(names) < 2 or names[1] != "LOAD_ASSERTION_ERROR" or not names[0].startswith("POP_JUMP"):
        return None
    return names[0].endswith("IF_TRUE")


class Attribute(Proxy):
    """An attribute `proxy.name`. Using it adds a node for the attribute, and calling it adds a call of the method.

    Example:
        >>> x = Proxy(Graph().placeholder("x"))
        >>> type(x.relu).__name__, x.relu().node.op
        ('Attribute', 'call_method')
    """

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer: TracerBase = root.tracer
        self._made: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._made is None:
            self._made = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy of a parameter, whose shape is known during the trace.

    Args:
        tracer: the tracer that creates nodes.
        node: the node that reads the parameter.
        name: the path of the parameter.
        param: the parameter.

    Example:
        >>> class Halves(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.weight = nn.Parameter(torch.ones(4))
        ...     def forward(self, x):
        ...         return x * self.weight if self.weight.shape[0] == 4 else x
        >>> tracer = torch.fx.Tracer(param_shapes_constant=True)
        >>> [node.name for node in tracer.trace(Halves()).nodes]
        ['x', 'weight', 'mul', 'output']
    """

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: core.Tensor) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    def size(self, *dims: int) -> Any:
        return self.param.size(*dims)

    def dim(self) -> int:
        return self.param.dim()

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def numel(self) -> int:
        return self.param.numel()

    def nelement(self) -> int:
        return self.param.numel()


_BOTH_SIDES = [
    "add",
    "and_",
    "floordiv",
    "lshift",
    "matmul",
    "mod",
    "mul",
    "or_",
    "pow",
    "rshift",
    "sub",
    "truediv",
    "xor",
]
_ONE_SIDE = ["abs", "eq", "ge", "getitem", "gt", "invert", "le", "lt", "ne", "neg", "pos"]


def _define(name: str, method: str, target: Callable[..., Any], reflected: bool = False) -> None:
    def apply(self: Proxy, *args: Any, **kwargs: Any) -> Proxy:
        operands = (*args, self) if reflected else (self, *args)
        return self.tracer.create_proxy("call_function", target, operands, kwargs)

    apply.__name__, apply.__qualname__ = method, f"Proxy.{method}"
    setattr(Proxy, method, apply)


for _name in (*_BOTH_SIDES, *_ONE_SIDE):
    _define(_name, f"__{_name.rstrip('_')}__", getattr(operator, _name))
for _name in _BOTH_SIDES:
    _define(_name, f"__r{_name.rstrip('_')}__", getattr(operator, _name), reflected=True)
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]  # defining __eq__ removes __hash__
