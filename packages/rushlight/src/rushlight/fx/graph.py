"""Traced programs: lists of nodes, and the Python code that is generated from them."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from rushlight.fx._codegen import CodeGen, TransformCodeFunc
from rushlight.fx._variables import _Names
from rushlight.fx._writer import PythonCode, _Style, _Writer
from rushlight.fx.node import Argument, Node, Target, map_aggregate, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]


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
        """Add a node at the insertion point, by default the end of the graph; see `inserting_before`."""
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
        """Return a context manager in which nodes are added before `n`, by default at the graph's start."""
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
        """Set the object that generates the function header and the return statement of the graph's code."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """Convert `args`, the arguments of the generated code, to the values of the graph's placeholders."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Convert `out`, the output of the graph, to the value that the generated code returns."""
        return self._codegen.process_outputs(out)

    def on_generate_code(
        self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc | None]
    ) -> AbstractContextManager[None]:
        r"""Set a function that changes the lines of the generated code.

        Args:
            make_transformer: a function that receives the current transforming function, or None, and returns
                the new transforming function. A transforming function receives the lines of the body, each
                with its line break, and returns the changed lines.

        Returns:
            a context manager that restores the previous function when it ends. Call `GraphModule.recompile`
            in this context to generate the code.

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
        """Raise RuntimeError if the graph is not valid.

        A node may be used only after its definition, each name may occur only once, and the paths in
        "call_module" and "get_attr" nodes must exist in the owning module.
        """
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
            additional_meta: keys of `node.meta` whose values are added as comments if `verbose` is true.

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
        # A column is at least two characters wider than its heading, as in the tables of the package tabulate.
        widths = [max(len(row[i]) + 2 * (row is rows[0]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
        print("\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows))

    def __str__(self) -> str:
        return "\n".join(["graph():", *(f"    {n.format_node()}" for n in self.nodes)])

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
    """Represents a node in a pickled graph by the number of the node."""

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
