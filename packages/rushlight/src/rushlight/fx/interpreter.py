"""Run graphs node by node, and transform graphs by running them with proxies."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Argument, Node, Target, map_aggregate, map_arg
from rushlight.fx.proxy import Proxy
from rushlight.fx.traceback import set_current_meta
from rushlight_nn import Module

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph node by node. Subclasses override the method for a kind of node, or `run_node`.

    Args:
        module: a GraphModule, or any module together with `graph`.
        garbage_collect_values: whether a result is released after its last use.
        graph: a graph to run instead of the graph of `module`.

    `run` raises RuntimeError if arguments are missing. If a node raises an error, a note that describes the
    node is added to the error.

    Example:
        >>> class Count(torch.fx.Interpreter):
        ...     calls = 0
        ...     def call_method(self, target, args, kwargs):
        ...         self.calls += 1
        ...         return super().call_method(target, args, kwargs)
        >>> counting = Count(torch.fx.symbolic_trace(lambda x: x.relu().neg()))
        >>> counting.run(torch.tensor([2.0])), counting.calls
        (tensor([-2.]), 2)
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.graph: Graph = module.graph if graph is None else graph
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True
    ) -> Any:
        """Run the graph and return its output.

        Args:
            args: the arguments of the graph's code.
            initial_env: a dict from nodes to their results. The nodes in this dict are not run.
            enable_io_processing: whether to flatten the containers in `args` to the values of the
                placeholders, and to return the container that the graph's code returns. If False, `args` are
                the values of the placeholders, and the result is the output of the graph.
        """
        self.env = dict(initial_env or {})
        self.args_iter = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        last_users: dict[Node, list[Node]] = {}
        if self.garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for used in node.all_input_nodes:
                    if used not in seen:
                        seen.add(used)
                        last_users.setdefault(node, []).append(used)
        for node in self.graph.nodes:
            if node not in self.env:
                try:
                    with set_current_meta(node, f"Interpreter_{type(self).__name__}"):
                        self.env[node] = self.run_node(node)
                except Exception as error:
                    error.add_note(f"while fx.Interpreter ran {node.format_node()}")
                    raise
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
            for used in last_users.get(node, ()):
                del self.env[used]
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run the graph with a list of the values of the placeholders, and return the graph's output.

        The list is emptied before the graph runs.
        """
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args, enable_io_processing=False)

    def run_node(self, n: Node) -> Any:
        """Return the result of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the next argument. For a target that begins with a star, return all remaining arguments."""
        if isinstance(target, str) and target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"fx.Interpreter.run(): the argument '{target}' is missing") from None

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the attribute with the path `target`, such as "layer.weight", of the module."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function `target`."""
        return target(*args, **kwargs)  # type: ignore[operator]

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Call the method `target` of the first argument, with the remaining arguments."""
        owner, *rest = args
        return getattr(owner, str(target))(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Call the submodule with the path `target`."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the output of the graph."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Return the attribute with the path `target`, such as "layer.weight", of the module."""
        value: Any = self.module
        parts = target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(value, part):
                raise RuntimeError(f"fx.Interpreter: the module has no '{'.'.join(parts[: i + 1])}'")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a node, with results in place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """Return `args` with each node replaced by its result."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(f"fx.Interpreter: '{n}' uses '{node}', which has not run")
            return self.env[node]

        return map_arg(args, value)


class Transformer(Interpreter):
    """Interpreter that runs a graph with proxies and records a new graph, which `transform()` returns as a GraphModule.

    Args:
        module: the GraphModule to transform.

    Example:
        >>> class Swap(torch.fx.Transformer):
        ...     def call_method(self, target, args, kwargs):
        ...         return super().call_method("neg" if target == "relu" else target, args, kwargs)
        >>> Swap(torch.fx.symbolic_trace(lambda x: x.relu())).transform()(torch.tensor([2.0]))
        tensor([-2.])
    """

    def __init__(self, module: GraphModule) -> None:
        from rushlight.fx._symbolic_trace import Tracer

        super().__init__(module)
        self.new_graph: Graph = Graph()

        class Appending(Tracer):
            def __init__(self, graph: Graph, root: Module) -> None:
                super().__init__()
                self.graph = graph
                self._enter(root)

            def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
                return True

        self.tracer: Tracer = Appending(self.new_graph, module)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(str(target), default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        module = self.fetch_attr(str(target))
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Run the graph with proxies, and return a module with the recorded graph."""
        self.new_graph.set_codegen(copy.deepcopy(self.graph._codegen))
        result = self.run(enable_io_processing=False)
        if result is not None:

            def node_of(a: Any) -> Any:
                return a.node if isinstance(a, Proxy) else a

            output = self.new_graph.output(map_aggregate(result, node_of))
            output.meta.update(self.graph.output_node().meta)
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)
