"""Operations of traced programs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.fx.immutable_collections import immutable_dict, immutable_list
from rushlight_core import Tensor, manual_seed
from rushlight_core._sym import _assert, _assert_async

if TYPE_CHECKING:
    from rushlight.fx.graph import Graph
    from rushlight.fx.operator_schemas import ArgsKwargsPair

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Target = Callable[..., Any] | str
Argument = Any

OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")

#: Functions whose calls are kept although their results are not used.
_side_effectful_functions: set[Callable[..., Any]] = {_assert, _assert_async, manual_seed, print}
_INPLACE_OPERATORS = (
    "delitem iadd iand ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor setitem"
)
_IN_PLACE = {getattr(operator, name) for name in _INPLACE_OPERATORS.split()}
# Calls whose result shares the memory of the first argument.
_VIEW_NAMES = (
    "alias as_strided chunk contiguous detach diagonal expand expand_as flatten getattr getitem movedim narrow permute "
    "ravel real reshape reshape_as select split squeeze swapaxes swapdims t tensor_split to transpose unbind unflatten "
    "unfold unsqueeze view view_as"
)
_VIEWS = set(_VIEW_NAMES.split())


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function that has side effects, so that dead-code elimination keeps its calls. Return the function.

    `has_side_effect` can be used as a decorator.

    Example:
        >>> @has_side_effect
        ... def log(x):
        ...     print(x)
    """
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """Return `a` with `fn` applied to each element of its nested tuples, lists, dicts and slices.

    The lists and dicts of the result are immutable.

    Example:
        >>> map_aggregate((1, [2, {"a": 3}]), lambda x: x * 10)
        (10, [20, {'a': 30}])
    """
    if isinstance(a, tuple):
        parts = [map_aggregate(part, fn) for part in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return immutable_list(map_aggregate(part, fn) for part in a)
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(part, fn)) for key, part in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(part, fn) for part in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """Return `a` with `fn` applied to the nodes in it.

    Raises:
        TypeError: `fn` is not callable.

    Example:
        >>> node = torch.fx.Graph().placeholder("x")
        >>> map_arg((node, 2), lambda node: node.name)
        ('x', 2)
    """
    if not callable(fn):
        raise TypeError(f"fx.map_arg(fn): must be callable, got {type(fn).__name__}")
    return map_aggregate(a, lambda part: fn(part) if isinstance(part, Node) else part)


class Node:
    """One operation of a Graph. Methods of Graph create nodes.

    Attributes:
        op: "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output".
        name: the name of the variable in the graph's code.
        target: the function, the name of the method or the path of the module that is called; the path of the
            attribute for "get_attr"; or the name of the argument for "placeholder".
        args, kwargs: the arguments, in which nodes represent their results. To change the arguments, assign a
            new tuple or a new dict.
        type: the type of the result, as a type or as the text of an annotation; or None. A trace reads the
            types of arguments and of the output from the annotations of the traced function.
        users: the nodes that use the result of this node, as the keys of a dict.
        meta: a dict in which passes over the graph can store data.

    Raises:
        ValueError: `op` is not one of the strings above, or `target` has the wrong type: it must be callable
            for "call_function", and a string for every other `op`.

    Example:
        >>> graph = torch.fx.symbolic_trace(lambda x: x.relu()).graph
        >>> node = list(graph.nodes)[1]
        >>> node.op, node.target, [argument.name for argument in node.args]
        ('call_method', 'relu', ['x'])
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in OPS:
            raise ValueError(f"fx.Node(op): must be one of {', '.join(OPS)}, got {op!r}")
        if op == "call_function" and not callable(target):
            raise ValueError(f"fx.Node(target): call_function needs a function, got {target!r}")
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(f"fx.Node(target): {op} needs a string, got {target!r}")
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._update(args, kwargs)

    # Order ---------------------------------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        """The node after this one; for the last node, a root node that is not in `graph.nodes`."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move `x`, a node of the same graph, to the position before this node."""
        if x.graph is not self.graph:
            raise AssertionError(
                f"fx.Node.prepend(x): must be a node of the same graph, but '{x}' belongs to another graph"
            )
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: Node) -> None:
        """Move `x`, a node of the same graph, to the position after this node."""
        if x is not self:
            self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    # Arguments -----------------------------------------------------------------------------------------------

    @property
    def args(self) -> tuple[Argument, ...]:
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._update(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._update(self._args, kwargs)

    def _update(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        def use(node: Node) -> Node:
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        for used in self._input_nodes:
            used.users.pop(self, None)
        self._input_nodes = {}
        self._args = map_arg(tuple(args), use)
        self._kwargs = map_arg(dict(kwargs), use)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes that occur in the arguments, each once, in the order of their first occurrences."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace a positional argument."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert a positional argument before the one at position `idx`."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError(f"fx.Node.insert_arg(idx): must be from 0 to {len(self._args)}, got {idx}")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace or add a keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace `old_input` by `new_input` in the arguments."""

        def other(node: Node) -> Node:
            return new_input if node is old_input else node

        self._update(map_arg(self._args, other), map_arg(self._kwargs, other))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Replace this node by `replace_with` in its users for which `delete_user_cb` returns True. Return these users."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "fx.Node.replace_all_uses_with(propagate_meta): must be False if replace_with.meta is not empty"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # Properties ----------------------------------------------------------------------------------------------

    @property
    def stack_trace(self) -> str | None:
        """The lines of the program that created the node, if the tracer recorded them."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _module(self) -> Any:
        owner = self.graph.owning_module
        if owner is None or self.op != "call_module":
            return None
        try:
            return owner.get_submodule(self.target)
        except AttributeError:
            return None

    def _writes_first_argument(self) -> bool:
        """Return whether the call modifies its first argument in place, judging by its name and arguments."""
        if self.op == "call_module":
            return getattr(self._module(), "inplace", False) is True
        if self.op not in ("call_function", "call_method"):
            return False
        name = self.target if isinstance(self.target, str) else getattr(self.target, "__name__", "")
        in_place = name.endswith("_") and not name.endswith("__")
        return in_place or self.target in _IN_PLACE or self._kwargs.get("inplace") is True

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether the call has an effect besides its result.

        Placeholders and outputs have an effect, and so have calls with `out`, calls of functions that `has_side_effect`
        registered, such as assertions, and calls of modules whose attribute `_is_impure` is true. A call that changes its
        first argument in place has an effect if this argument, or the tensor of which it is a view, comes from outside of
        the graph or is used later.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function" and (
            self.target in _side_effectful_functions or self._kwargs.get("out") is not None
        ):
            return True
        if self.op == "call_module" and getattr(self._module(), "_is_impure", False):
            return True
        if not self._writes_first_argument():
            return False
        memory = self._args[0] if self._args else self._kwargs.get("input")
        while isinstance(memory, Node):
            if memory.op in ("placeholder", "get_attr") or any(
                user is not self and self < user for user in memory.users
            ):
                return True
            name = memory.target if isinstance(memory.target, str) else memory.target.__name__
            if not memory._args or not (name in _VIEWS or memory._writes_first_argument()):
                return False
            memory = memory._args[0]
        return False

    def __lt__(self, other: Node) -> bool:
        """Return whether this node comes before another node of its graph."""
        node = self._next
        while node.op != "root":
            if node is other:
                return True
            node = node._next
        return False

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or other < self

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:
        """Return the normalized arguments, which include the defaults of omitted arguments.

        Args:
            root: the module that contains the layer of a "call_module" node.
            arg_types, kwarg_types: the types of the arguments. They select the overload of an
                operator. If they are omitted, the arguments that are not nodes select it.
            normalize_to_only_use_kwargs: whether to return all arguments as keyword arguments.

        Returns:
            the arguments, or None if the node calls neither a function with a known signature nor a layer of `torch.nn`.

        Raises:
            RuntimeError: no types are given, and the overload depends on the types of arguments that are
                nodes.

        Example:
            >>> traced = torch.fx.symbolic_trace(lambda x: torch.sum(x, 1))
            >>> list(traced.graph.nodes)[1].normalized_arguments(traced, normalize_to_only_use_kwargs=True).kwargs
            {'input': x, 'dim': 1, 'keepdim': False, 'dtype': None}
        """
        from rushlight.fx.operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(
                self.target,  # type: ignore[arg-type]
                self._args,
                self._kwargs,
                arg_types,
                kwarg_types,
                normalize_to_only_use_kwargs,
            )
        if self.op == "call_module":
            return normalize_module(
                root, str(self.target), self._args, self._kwargs, normalize_to_only_use_kwargs
            )
        return None

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """Return the node as a line of text.

        Args:
            placeholder_names: a list. If the list is not empty and the node is a placeholder, the name of the
                node is appended to the list, and None is returned.
            maybe_return_typename: a list. If it is not empty and the node is an output node with a type, the
                first element is replaced by an arrow and the type, as in " -> Tensor".
            include_tensor_metadata: whether to state the dtype, shape, strides and device of a result that is in
                `node.meta`.
        """
        if self.op == "output":
            if self.type is not None and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_text(self.type)}"
            return f"return {self._args[0]}"
        described = ""
        if include_tensor_metadata and (tensor := _tensor_text(self, True, True)):
            described = f'Tensor "{tensor}" '
        elif self.type is not None:
            described = f"{_type_text(self.type)} "
        head = f"%{self.name} : {described}[num_users={len(self.users)}] = "
        if self.op == "placeholder":
            if placeholder_names:
                placeholder_names.append(
                    f"{self.target}{'' if self.type is None else f' : {_type_text(self.type)}'}"
                )
                return None
            default = f"(default={self._args[0]})" if self._args else ""
            return f"{head}placeholder[target={self.target}]{default}"
        target = self.target if isinstance(self.target, str) else qualified_name(self.target)
        if getattr(self.target, "__module__", None) == "builtins":
            target = f"builtins.{target.removeprefix('builtins.')}"
        head += f"{self.op}[target={target}]"
        if self.op == "get_attr":
            return head
        return f"{head}(args = {_text(self._args)}, kwargs = {_text(self._kwargs)})"

    def __repr__(self) -> str:
        return self.name


def _abbreviated(dtype: Any) -> str:
    """Return a short name of a dtype: "f32", "i64"."""
    name = str(dtype).rpartition(".")[2]
    for long, short in _DTYPES.items():
        if name.startswith(long):
            return short + name[len(long) :]
    return name


_DTYPES = {"bfloat": "bf", "bool": "b8", "complex": "c", "float": "f", "int": "i", "uint": "u"}


def _tensor_text(
    node: Node,
    include_stride: bool,
    include_device: bool,
    color: Callable[..., str] = lambda text, *codes: text,
) -> str:
    """Return the dtype and the shape of the tensor that `node.meta` contains or describes, or an empty string."""
    meta = node.meta
    found: Any = meta.get("val", meta.get("tensor_meta", meta.get("example_value")))
    if isinstance(found, Tensor):
        stride: Any = tuple(found.stride()) if str(found.layout) == "torch.strided" else None
        device = str(found.device)
    elif hasattr(found, "_fields") and hasattr(found, "memory_format"):  # TensorMetadata, which has no device
        stride, device = found.stride, ""
    else:
        return ""
    text = color(_abbreviated(found.dtype), 31) + color(str(list(found.shape)), 34)
    if include_stride and stride is not None:
        text += color(str(list(stride)), 2, 34)
    return text + color(device, 2, 32) if include_device and device else text


def _type_text(kind: Any) -> str:
    if isinstance(kind, str):
        return repr(kind)
    return qualified_name(kind) if isinstance(kind, type) and not hasattr(kind, "__args__") else repr(kind)


def _text(argument: Argument) -> str:
    """Return an argument as text, with % before the names of nodes. Keys and strings have no quotes, as in PyTorch."""
    if isinstance(argument, Node):
        return f"%{argument.name}"
    if isinstance(argument, list):
        return f"[{', '.join(map(_text, argument))}]"
    if isinstance(argument, tuple):
        return f"({', '.join(map(_text, argument))}{',' * (len(argument) == 1)})"
    if isinstance(argument, dict):
        return f"{{{', '.join(f'{key}: {_text(value)}' for key, value in argument.items())}}}"
    return str(argument)


def qualified_name(function: Callable[..., Any]) -> str:
    """Return a dotted name of a function. The name begins with `torch` if this library defines the function."""
    from rushlight.fx._names import name_of

    return name_of(function) or repr(function)
