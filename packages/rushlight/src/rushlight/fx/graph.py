"""Traced programs: lists of nodes, and the Python code that is generated from them."""

from __future__ import annotations

import builtins
import copy
import enum
import inspect
import keyword
import math
import re
import types
import typing
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import rushlight as torch
from rushlight.fx import _pytree as fx_pytree
from rushlight.fx._names import name_of
from rushlight.fx.node import Argument, Node, Target, _tensor_text, map_aggregate, map_arg
from rushlight_core import pytree

__all__ = ["CodeGen", "Graph", "PythonCode"]

# The beginning of the names of generated files, which tracebacks show.
GENERATED = "<fx graph "

_INFIX = {
    "add": "+",
    "and_": "&",
    "eq": "==",
    "floordiv": "//",
    "ge": ">=",
    "gt": ">",
    "le": "<=",
    "lshift": "<<",
    "lt": "<",
    "matmul": "@",
    "mod": "%",
    "mul": "*",
    "ne": "!=",
    "or_": "|",
    "pow": "**",
    "rshift": ">>",
    "sub": "-",
    "truediv": "/",
    "xor": "^",
}
_PREFIX = {"invert": "~", "neg": "-", "pos": "+"}
_OWN_NAMES = ("self", "torch", "inf", "nan", "device", "math", "pytree", "fx_pytree")
_TAKEN = frozenset((*keyword.kwlist, *dir(builtins), *_OWN_NAMES))
_NAME = re.compile(
    r"\**(\w+)"
)  # of a parameter that is written with its stars, its annotation and its default
_NUMBERED = re.compile(r"^([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?$")


class _Names:
    """Gives names that are valid in Python and unused: "relu", "relu_1", "relu_2"."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._last: dict[str, int] = {}

    def create(self, candidate: str) -> str:
        candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        if candidate not in self._used and candidate not in _TAKEN:
            self._used.add(candidate)
            return candidate
        match = _NUMBERED.match(candidate)
        assert match is not None
        base = match.group(1)
        number = int(match.group(2)) if match.group(2) else self._last.get(base, 0)
        while f"{base}_{number}" in self._used or number == 0:
            number += 1
        self._last[base] = number
        self._used.add(f"{base}_{number}")
        return f"{base}_{number}"


@dataclass
class PythonCode:
    """Source of a function `forward`, and the global names that it uses.

    Example:
        >>> graph = torch.fx.symbolic_trace(lambda x: x.relu()).graph
        >>> print(graph.python_code("self").src.strip())
        def forward(self, x):
            relu = x.relu();  x = None
            return relu
    """

    src: str
    globals: dict[str, Any]


TransformCodeFunc = Callable[[list[str]], list[str]]


class CodeGen:
    r"""Writes the first and the last line of the code of a graph. `Graph.set_codegen` sets it.

    A subclass can give the code other arguments and results than the graph has. Such a subclass also overrides
    `process_inputs` and `process_outputs`, which Interpreter calls.

    Example:
        >>> class OneList(torch.fx.graph.CodeGen):
        ...     def gen_fn_def(self, free_vars, maybe_return_annotation):
        ...         return f"def forward(self, values):\n    {', '.join(free_vars)}, = values"
        ...     def process_inputs(self, values):
        ...         return values
        >>> traced = torch.fx.symbolic_trace(lambda x, y: x - y)
        >>> traced.graph.set_codegen(OneList())
        >>> _ = traced.recompile()
        >>> traced([torch.tensor(3.0), torch.tensor(1.0)])
        tensor(2.)
    """

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None
        self._func_name: str = "forward"
        self._root: str = "self"

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """Return the beginning of the function, up to the colon and any lines that define `free_vars`.

        Args:
            free_vars: the placeholders, as they are written in a list of parameters: "x", "*args", "y : int = 3".
            maybe_return_annotation: an annotation of the result with its arrow, or an empty string.
            expanded_def: whether to write each parameter on a line of its own.
        """
        parameters = free_vars if free_vars[:1] == [self._root] else [self._root, *free_vars]
        if not expanded_def:
            return f"def {self._func_name}({', '.join(parameters)}){maybe_return_annotation}:"
        lines = "".join(f"    {_before_comment(parameter)}\n" for parameter in parameters)
        return f"def {self._func_name}(\n{lines}){maybe_return_annotation}:"

    def generate_output(
        self, output_args: Argument, *, descs: Any = None, repr_fn: Callable[[Any], str] = repr
    ) -> str:
        """Return the statement that returns `output_args`.

        Args:
            output_args: the output of the graph.
            descs: a description of each element of `output_args`, or None. The descriptions become comments.
            repr_fn: a function that writes nodes and values as code.
        """
        if descs is None or not isinstance(output_args, (list, tuple)):
            return f"return {repr_fn(output_args)}"
        pairs = zip(output_args, descs, strict=True)
        lines = "".join(f"    {repr_fn(value)},  # {description}\n" for value, description in pairs)
        return f"return (\n{lines})" if isinstance(output_args, tuple) else f"return [\n{lines}]"

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of the graph's placeholders if the code is called with `args`."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return what the code returns if `outputs` is the output of the graph."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return the global names that the lines of this object use, with their values."""
        return []


def _before_comment(parameter: str) -> str:
    """Return the text of a parameter with a comma, which is before a comment."""
    code, mark, comment = parameter.partition("  # ")
    return f"{code},{mark}{comment}"


def _in_order(parameters: list[str]) -> list[str]:
    """Make the parameters without a default value that follow one with a default value keyword-only, as Python requires."""
    codes = [parameter.partition("  # ")[0] for parameter in parameters]
    plain = [not code.startswith("*") for code in codes]
    first = next((i for i, code in enumerate(codes) if plain[i] and " = " in code), len(codes))
    late = next((i for i in range(first, len(codes)) if plain[i] and " = " not in codes[i]), None)
    if late is None:
        return parameters
    variable = [p for p, code in zip(parameters, codes, strict=True) if code[:1] == "*" != code[1:2]]
    rest = [p for p in parameters[late:] if p not in variable]
    return [*(p for p in parameters[:late] if p not in variable), *(variable or ["*"]), *rest]


class _PyTreeInfo(NamedTuple):
    """The containers among the arguments and results of a traced function.

    `orig_args` are the names of the function's parameters, with the stars of `*args` and `**kwargs`.
    """

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


class _PyTreeCodeGen(CodeGen):
    """Code that takes containers and returns a container, for a graph whose placeholders and results are their leaves."""

    def __init__(self, pytree_info: _PyTreeInfo, defaults: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.pytree_info = pytree_info
        self._defaults = dict(defaults or {})

    def _default(self, name: str) -> str:
        if name not in self._defaults:
            return ""
        value = self._defaults[name]
        plain = value is None or type(value) in (bool, int, str)
        return f" = {value!r}" if plain else f" = _default_{name}"

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """Return a definition with the parameters of the traced function, and a line that flattens them."""
        names = self.pytree_info.orig_args
        plain = [name.lstrip("*") for name in names]
        parameters = [name + self._default(name) for name in names]
        definition = super().gen_fn_def(parameters, maybe_return_annotation, expanded_def=expanded_def)
        variables = "".join(f"{_NAME.match(variable)[1]}, " for variable in free_vars)  # type: ignore[index]
        values = f"({', '.join(plain)}{',' * (len(plain) == 1)})"
        call = f"fx_pytree.flatten_arguments({plain}, {values}, {self._root}._in_spec)"
        return f"{definition}\n    {f'{variables}= ' * bool(variables)}{call}"

    def generate_output(
        self, output_args: Argument, *, descs: Any = None, repr_fn: Callable[[Any], str] = repr
    ) -> str:
        """Return a statement that returns a container of the results."""
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        return f"return pytree.tree_unflatten({repr_fn(output_args)}, {self._root}._out_spec)"

    def process_inputs(self, *args: Any) -> Any:
        """Return the leaves of the arguments of the traced function."""
        kinds = {0: inspect.Parameter.POSITIONAL_OR_KEYWORD, 1: inspect.Parameter.VAR_POSITIONAL}
        parameters = [
            inspect.Parameter(
                name.lstrip("*"),
                kinds.get(name.count("*"), inspect.Parameter.VAR_KEYWORD),
                default=self._defaults.get(name, inspect.Parameter.empty),
            )
            for name in self.pytree_info.orig_args
        ]
        bound = inspect.Signature(parameters).bind(*args)
        bound.apply_defaults()
        values = tuple(bound.arguments.values())
        return fx_pytree.flatten_arguments(list(bound.arguments), values, self.pytree_info.in_spec)

    def process_outputs(self, outputs: Any) -> Any:
        """Return the container of the results."""
        spec = self.pytree_info.out_spec
        return outputs if spec is None else pytree.tree_unflatten(outputs, spec)

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return the modules that the generated lines use, and default values that cannot be written as literals."""
        defaults = [
            (f"_default_{name}", value)
            for name, value in self._defaults.items()
            if self._default(name) == f" = _default_{name}"
        ]
        return [("fx_pytree", fx_pytree), ("pytree", pytree), *defaults]


class Graph:
    """A program as a list of nodes that ends with the "output" node.

    Args:
        owning_module: the module in which paths of `call_module` and `get_attr` are looked up, or None.
        tracer_cls: the class of the Tracer that created the graph.
        tracer_extras: stored, but not used.

    Methods raise ValueError if a node belongs to another graph, and RuntimeError if they need an output and the graph has
    none.

    Example:
        >>> graph = Graph()
        >>> x = graph.placeholder("x")
        >>> _ = graph.output(graph.call_method("relu", (x,)))
        >>> torch.fx.GraphModule(nn.Module(), graph)(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        self._root = Node(self, "", "output", "root", (), {})
        self._root.op = "root"
        self._count = 0
        self._names = _Names()
        self._insert: Callable[[Node], None] = self._root.prepend
        self._owner = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()

    @property
    def owning_module(self) -> Any:
        """The GraphModule that runs this graph."""
        return self._owner

    @owning_module.setter
    def owning_module(self, module: Any) -> None:
        self._owner = module

    # Nodes ---------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> _Nodes:
        """All nodes in the order in which they run. Nodes may be added and erased while a loop iterates over them."""
        return _Nodes(self)

    def output_node(self) -> Node:
        """Return the last node."""
        last = self._root._prev
        if last.op != "output":
            raise RuntimeError("fx.Graph.output_node(): the graph has no output")
        return last

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Return the nodes whose operation is `op` and, unless `target` is None, whose target is `target`."""
        if op == "call_function" and target is None:
            raise AssertionError("fx.Graph.find_nodes(target): must be given for call_function")
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node at the insertion point: the end, unless `inserting_before` or `inserting_after` moved it."""
        node = Node(self, "", op, target, args or (), kwargs or {}, type_expr)
        map_arg((node.args, node.kwargs), self._check_own)
        node.name = self._names.create(name if name is not None else self._target_to_str(target))
        self._insert(node)
        self._count += 1
        return node

    def _check_own(self, node: Node) -> Node:
        if node.graph is not self or node._erased:
            raise ValueError(
                f"fx.Graph.create_node(args): the node '{node}' "
                f"{'is erased' if node._erased else 'belongs to another graph'}"
            )
        return node

    def _target_to_str(self, target: Target | None) -> str:
        name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
        if name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return re.sub("(?<=[a-z])([A-Z])", r"_\1", name).lower()

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an argument to the graph. An argument without a default value is required."""
        default = () if default_value is ... or default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, default, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a node for the parameter, buffer or other attribute at a path."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of the submodule at a path."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Add the output of the graph: a node, or containers of nodes."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Add a copy of a node of another graph; `arg_transform` maps the node's arguments to nodes of this graph."""
        copied = self.create_node(
            node.op,
            node.target,
            map_arg(node.args, arg_transform),
            dict(map_arg(node.kwargs, arg_transform)),
            node.name,
            node.type,
        )
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Argument | tuple[Argument, Node] | None:
        """Copy the nodes of `g` that are not in `val_map`, and map each original to its copy in `val_map`.

        Return the output of `g`, with each node replaced by its copy, or None if `g` has no output node. With
        `return_output_node`, return a tuple of this output and the output node of `g`.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node whose result is not used."""
        if to_erase.users:
            raise RuntimeError(
                f"fx.Graph.erase_node(): '{to_erase}' is used by {', '.join(map(str, to_erase.users))}"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"fx.Graph.erase_node(): '{to_erase}' belongs to another graph")
        if to_erase._erased:
            return
        to_erase._unlink()
        to_erase._erased = True
        to_erase._update((), {})
        self._count -= 1

    @contextmanager
    def _inserting(self, insert: Callable[[Node], None]) -> Iterator[None]:
        before, self._insert = self._insert, insert
        try:
            yield
        finally:
            self._insert = before

    def inserting_before(self, n: Node | None = None) -> Any:
        """Return a context manager in which nodes are added before `n` or, without `n`, at the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError(
                f"fx.Graph.inserting_before(n): must be a node of this graph, "
                f"but '{n}' belongs to another graph"
            )
        return self._inserting(n.prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """Return a context manager in which nodes are added after `n`, in the order in which they are created.

        Without `n`, nodes are added at the end.
        """
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError(
                f"fx.Graph.inserting_after(n): must be a node of this graph, "
                f"but '{n}' belongs to another graph"
            )
        last = n

        def insert(node: Node) -> None:
            nonlocal last
            last.append(node)
            last = node

        return self._inserting(insert)

    # Arguments and results of the code -------------------------------------------------------------------------

    def set_codegen(self, codegen: CodeGen) -> None:
        """Set the object that writes the first and the last line of the graph's code."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of the placeholders if the code of the graph is called with `args`."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return what the code of the graph returns if `out` is the output of the graph."""
        return self._codegen.process_outputs(out)

    def on_generate_code(
        self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc | None]
    ) -> AbstractContextManager[None]:
        r"""Set a function that changes the lines of the generated code.

        Args:
            make_transformer: a function that receives the function that is set, or None, and returns the function to set.
                That function receives the lines of the body, each with its line break, and returns lines.

        Returns:
            a context manager, at whose end the previous function is set again. `GraphModule.recompile` generates new code.

        Example:
            >>> traced = torch.fx.symbolic_trace(lambda x: x.relu())
            >>> with traced.graph.on_generate_code(lambda _: lambda body: ["print('called')\n", *body]):
            ...     _ = traced.recompile()
            >>> traced(torch.tensor(2.0))
            called
            tensor(2.)
        """
        codegen, before = self._codegen, self._codegen._body_transformer
        codegen._body_transformer = make_transformer(before)

        @contextmanager
        def restore() -> Iterator[None]:
            try:
                yield
            finally:
                codegen._body_transformer = before

        return restore()

    # Passes --------------------------------------------------------------------------------------------------

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase nodes that have no effect and whose results are not used. Return whether a node was erased."""
        self.lint()
        before = self._count
        for node in reversed(self.nodes):
            if not node.users and not (is_impure_node(node) if is_impure_node else node.is_impure()):
                self.erase_node(node)
        return self._count != before

    def lint(self) -> None:
        """Raise RuntimeError if a node is used before its definition, or if a name occurs twice or a path does not exist."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"fx.Graph.lint(): the node '{node}' belongs to another graph")
            for used in node.all_input_nodes:
                if used not in seen:
                    raise RuntimeError(
                        f"fx.Graph.lint(): '{node}' uses '{used}' before it is defined\nhint: move it by node.prepend(x)"
                    )
            if node.name in names:
                raise RuntimeError(f"fx.Graph.lint(): two nodes are named '{node.name}'")
            if self._owner is not None and node.op in ("call_module", "get_attr"):
                value = self._owner
                for part in str(node.target).split("."):
                    if not hasattr(value, part):
                        raise RuntimeError(
                            f"fx.Graph.lint(): '{node}' refers to '{node.target}', which the module does not have"
                        )
                    value = getattr(value, part)
            seen.add(node)
            names.add(node.name)

    # Text ----------------------------------------------------------------------------------------------------

    def python_code(
        self,
        root_module: str = "self",
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        """Return the source of a function `forward` that runs the graph.

        Args:
            root_module: the name by which the code refers to the module.
            verbose: whether to state the dtype and the shape of each result, and the line of the program that created the
                node, as far as they are known. `node.meta` contains them as "val", "tensor_meta", "example_value" and
                "stack_trace".
            include_stride, include_device: whether `verbose` also states strides and devices.
            colored: whether to write the code with ANSI escape sequences, for a terminal. Such code cannot be executed.
            expanded_def: whether to write each parameter on a line of its own, with its description `node.meta["desc"]`.
            record_func: must be False.
            additional_meta: keys of `node.meta`. With `verbose`, comments state the values.

        Raises:
            NotImplementedError: `record_func` is True.

        Example:
            >>> traced = torch.fx.symbolic_trace(lambda x: x.relu())
            >>> _ = torch.fx.passes.shape_prop.ShapeProp(traced).propagate(torch.ones(2, 3))
            >>> print(traced.graph.python_code(verbose=True, include_stride=True).src)
            def forward(self, x: "f32[2, 3][3, 1]"):
                relu: "f32[2, 3][3, 1]" = x.relu();  x = None
                return relu
            <BLANKLINE>
        """
        if record_func:
            raise NotImplementedError("fx.Graph.python_code(record_func): must be False")
        style = _Style(
            verbose, include_stride, include_device, colored, expanded_def, tuple(additional_meta or ())
        )
        return _Writer(self, root_module, style).write()

    def print_tabular(self) -> None:
        """Print a table of the nodes."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        for n in self.nodes:
            rows.append((n.op, n.name, str(n.target), str(n.args), str(dict(n.kwargs))))
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
        print("\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows))

    def __str__(self) -> str:
        arguments = ", ".join(f"%{n.name}" for n in self.nodes if n.op == "placeholder")
        lines = [f"    {n.format_node()}" for n in self.nodes]
        return "\n".join([f"graph({arguments}):", *lines])

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        copied = Graph(tracer_cls=self._tracer_cls)
        copied._codegen = copy.deepcopy(self._codegen, memo)
        memo[id(self)] = copied
        values: dict[Node, Node] = {}
        for node in self.nodes:
            values[node] = copied.node_copy(node, values.__getitem__)
            memo[id(node)] = values[node]
            values[node].meta = copy.deepcopy(node.meta, memo)
        return copied

    def __reduce__(self) -> Any:
        numbers = {node: _NodeNumber(number) for number, node in enumerate(self.nodes)}
        nodes = [
            (
                node.op,
                node.target,
                *map_arg((node.args, node.kwargs), numbers.__getitem__),
                node.name,
                node.type,
                node.meta,
            )
            for node in self.nodes
        ]
        # A class that is defined in a function cannot be pickled.
        local = "<locals>" in getattr(self._tracer_cls, "__qualname__", "")
        return _unpickled, (nodes, None if local else self._tracer_cls, self._codegen)


@dataclass(frozen=True)
class _NodeNumber:
    """Stands for a node in a pickled graph, and contains the number of the node."""

    number: int


def _unpickled(nodes: list[Any], tracer_cls: Any, codegen: CodeGen | None = None) -> Graph:
    graph = Graph(tracer_cls=tracer_cls)
    graph._codegen = codegen or CodeGen()
    made: list[Node] = []

    def found(value: Any) -> Any:
        return made[value.number] if isinstance(value, _NodeNumber) else value

    for op, target, args, kwargs, name, kind, meta in nodes:
        args, kwargs = map_aggregate((args, kwargs), found)
        made.append(graph.create_node(op, target, args, dict(kwargs), name, kind))
        made[-1].name, made[-1].meta = name, meta
    return graph


class _Nodes:
    def __init__(self, graph: Graph, step: str = "_next") -> None:
        self._graph = graph
        self._step = step

    def __len__(self) -> int:
        return self._graph._count

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        node = getattr(root, self._step)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self._step)

    def __reversed__(self) -> Iterator[Node]:
        return iter(_Nodes(self._graph, "_prev"))


class _Style(NamedTuple):
    """What the code of a graph states besides its operations. See `Graph.python_code`."""

    verbose: bool = False
    include_stride: bool = False
    include_device: bool = False
    colored: bool = False
    expanded_def: bool = False
    additional_meta: tuple[str, ...] = ()
    #: Whether the types of nodes are stated.
    annotations: bool = True

    def color(self, text: str, *codes: int) -> str:
        """Return the text with the ANSI codes of a color, if the code is colored."""
        return "".join(f"\x1b[{code}m" for code in codes) + f"{text}\x1b[0m" if self.colored else text


_RED, _BLUE, _GREEN, _DIM = 31, 34, 32, 2


class _Writer:
    """Writes a graph as Python code. A variable is freed by the line that uses it last."""

    def __init__(self, graph: Graph, root: str, style: _Style = _Style()) -> None:  # noqa: B008 - immutable
        self._graph = graph
        self._root = root
        self._style = style
        self._globals: dict[str, Any] = {"torch": torch}
        self._names = _Names()
        #: The variables of the nodes. A variable has the name of its node unless this is a keyword or in use.
        self._variables = {node: self._names.create(node.name) for node in graph.nodes}

    def write(self) -> PythonCode:
        style = self._style
        last_user: dict[Node, Node] = {}
        for node in self._graph.nodes:
            last_user[node] = node
            for used in node.all_input_nodes:
                last_user[used] = node
        freed: dict[Node, list[str]] = {}
        for node, user in last_user.items():
            if node.op != "output" and (node.op != "placeholder" or user is not node):
                freed.setdefault(user, []).append(self._variables[node])
        codegen = self._graph._codegen
        codegen._root = self._root
        parameters: list[str] = []
        lines: list[str] = []
        comment = annotation = ""
        returned = False
        for node in self._graph.nodes:
            if node.op == "placeholder":
                default = f" = {self._value(node.args[0])}" if node.args else ""
                stars = node.target[: len(node.target) - len(str(node.target).lstrip("*"))]  # type: ignore[index, arg-type]
                plain = str(node.target).lstrip("*")
                described = node.meta.get("desc") if style.expanded_def else None
                suffix = "" if described is None else f"  # {described}"
                parameters.append(f"{stars}{plain}{self._type_of(node)}{default}{suffix}")
                if plain != self._variables[node]:
                    lines.append(f"{self._variables[node]} = {plain}")
            elif node.op == "output":
                lines.append(self._output(codegen, node))
                if node.type is not None and style.annotations:
                    annotation = f" -> {self._annotation(node.type)}"
                returned = True
                break
            else:
                if style.verbose and (found := self._comment(node)) != comment:
                    comment = found
                    if comment:
                        lines.append(style.color(f"# {comment}", _DIM))
                line = f"{self._variables[node]}{self._type_of(node)} = {self._call(node)}"
                if names := freed.get(node):
                    line += ";  " + style.color(" = ".join((*names, "None")), _DIM)
                lines.append(line)
        if not returned:
            lines.append("return None")
        for name, value in codegen.additional_globals():
            self._globals[name] = value
        body = [f"{line}\n" for line in lines]
        if codegen._body_transformer is not None:
            body = codegen._body_transformer(body)
        indented = "".join(f"    {line}" if line.strip() else line for line in "".join(body).splitlines(True))
        if type(codegen).gen_fn_def is CodeGen.gen_fn_def:
            parameters = _in_order(parameters)
        # A subclass may define gen_fn_def without the argument `expanded_def`.
        accepted = inspect.signature(codegen.gen_fn_def).parameters
        options = {"expanded_def": style.expanded_def} if "expanded_def" in accepted else {}
        definition = codegen.gen_fn_def(parameters, annotation, **options)
        return PythonCode(f"{definition}\n{indented}", self._globals)

    def _output(self, codegen: CodeGen, node: Node) -> str:
        # A subclass may define generate_output without the arguments `repr_fn` and `descs`.
        accepted = inspect.signature(codegen.generate_output).parameters
        options: dict[str, Any] = {"repr_fn": self._value} if "repr_fn" in accepted else {}
        if "descs" in accepted and self._style.expanded_def:
            options["descs"] = node.meta.get("desc")
        return codegen.generate_output(node.args[0], **options)

    def _type_of(self, node: Node) -> str:
        """Return the annotation of a variable or parameter, with its colon, or an empty string."""
        if self._style.verbose and (text := _tensor_text(node, *self._style[1:3], color=self._style.color)):
            return f': "{text}"'
        if node.type is None or not self._style.annotations:
            return ""
        return f" : {self._annotation(node.type)}"

    def _annotation(self, kind: Any) -> str:
        return self._written(kind) or self._global(None, kind)

    def _written(self, kind: Any) -> str:
        """Return a type as code, or an empty string for a type that only a global name can denote."""
        if kind is None or kind is type(None):
            return "None"
        if isinstance(kind, str):
            return repr(kind)
        origin, contained = typing.get_origin(kind), typing.get_args(kind)
        if origin is None:
            return self._global(name_of(kind), kind) if isinstance(kind, type) else ""
        if any(isinstance(part, (str, typing.ForwardRef, typing.TypeVar)) for part in contained):
            return ""
        if origin in (typing.Union, types.UnionType):
            parts = [self._written(part) for part in contained]
            return " | ".join(parts) if all(parts) else ""
        parts = ["..." if part is ... else self._written(part) for part in contained]
        return f"{self._annotation(origin)}[{', '.join(parts)}]" if parts and all(parts) else ""

    def _comment(self, node: Node) -> str:
        """Return what is known about the creation of a node: the line of the program and the data in `node.meta`."""
        parts = [f"{key}: {node.meta[key]}" for key in self._style.additional_meta if key in node.meta]
        if custom := node.meta.get("custom"):
            parts.append(f"Annotation: {custom}")
        if node.stack_trace:
            parts.append(" ".join(node.stack_trace.strip().splitlines()[-1:]).strip())
        return ", ".join(parts)

    def _call(self, node: Node) -> str:
        if node.op == "get_attr":
            return self._path(str(node.target))
        if node.op == "call_module":
            return f"{self._path(str(node.target))}({self._arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            return f"{self._value(node.args[0])}.{node.target}({self._arguments(node.args[1:], node.kwargs)})"
        target: Any = node.target
        name = name_of(target)
        if name and name.startswith("operator.") and not node.kwargs:
            values = [self._value(argument) for argument in node.args]
            simple = name.removeprefix("operator.")
            if simple in _INFIX and len(values) == 2:
                left = f"({values[0]})" if values[0].startswith("-") else values[0]
                return f"{left} {_INFIX[simple]} {values[1]}"
            if simple in _PREFIX and len(values) == 1:
                return f"{_PREFIX[simple]}{values[0]}"
            if simple == "getitem":
                return f"{values[0]}[{values[1]}]"
        if target is getattr and len(node.args) == 2 and str(node.args[1]).isidentifier():
            return f"{self._value(node.args[0])}.{node.args[1]}"
        return f"{self._global(name, target)}({self._arguments(node.args, node.kwargs)})"

    def _arguments(self, args: Any, kwargs: Any) -> str:
        texts = [self._value(argument) for argument in args]
        plain = {
            key: value for key, value in kwargs.items() if key.isidentifier() and not keyword.iskeyword(key)
        }
        texts += [f"{key} = {self._value(value)}" for key, value in plain.items()]
        if others := {key: value for key, value in kwargs.items() if key not in plain}:
            texts.append(f"**{self._value(others)}")
        return ", ".join(texts)

    def _path(self, path: str) -> str:
        text = self._root
        for part in path.split("."):
            simple = part.isidentifier() and not keyword.iskeyword(part)
            text = f"{text}.{part}" if simple else f'getattr({text}, "{part}")'
        return text

    def _global(self, name: str | None, value: Any) -> str:
        """Return a global name by which the generated code refers to the object `value`."""
        if name is not None and (name.startswith("torch.") or "." not in name):
            return name
        for known, other in self._globals.items():
            if other is value:
                return known
        known = self._names.create((name or f"_{type(value).__name__}").replace(".", "_"))
        self._globals[known] = value
        return known

    def _value(self, value: Any) -> str:
        if isinstance(value, Node):
            return self._variables[value]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            made = self._global(
                None if type(value).__name__ == "tuple" else f".{type(value).__name__}", type(value)
            )
            return f"{made}({', '.join(map(self._value, value))})"
        if isinstance(value, tuple):
            return f"({', '.join(map(self._value, value))}{',' * (len(value) == 1)})"
        if isinstance(value, list):
            return f"[{', '.join(map(self._value, value))}]"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{self._value(k)}: {self._value(v)}' for k, v in value.items())}}}"
        if isinstance(value, slice):
            return f"slice({self._value(value.start)}, {self._value(value.stop)}, {self._value(value.step)})"
        if type(value) in (bool, int):
            return self._style.color(repr(value), _BLUE)
        if value is ... or value is None or type(value) in (str, bytes):
            return repr(value)
        if type(value) is float:
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        if type(value) is complex and math.isfinite(abs(value)):
            return repr(value)
        if isinstance(value, range):
            return f"range({value.start}, {value.stop}, {value.step})"
        if isinstance(value, torch.dtype):
            return str(value) if str(value).startswith("torch.") else f"torch.{str(value).rpartition('.')[2]}"
        if isinstance(value, torch.device):
            return f'torch.device("{value}")'
        if isinstance(value, type) or callable(value):
            return self._global(name_of(value), value)
        if isinstance(value, enum.Enum):
            return f"{self._global(None, type(value))}.{value.name}"
        return self._global(None, value)
