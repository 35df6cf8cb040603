"""Draw graphs by Graphviz."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, _tensor_text, qualified_name
from rushlight_core import Tensor

__all__ = ["FxGraphDrawer"]

_COLORS = {
    "call_function": "#f5d7b0",
    "get_attr": "#dfe3e8",
    "output": "#b8d8c0",
    "placeholder": "#cfe2f3",
}
# Colors of calls of methods and modules, which depend on their targets.
_MANY = ("#f2e394", "#d9c6e8", "#bfe3e0", "#f4c7c3", "#c9d7a7", "#e8d3c0")


class FxGraphDrawer:
    """Draws the graphs of a module and of all its submodules that are GraphModules. Needs the package `pydot`.

    Args:
        graph_module: the module.
        name: the name of the drawing.
        ignore_getattr: whether nodes that read attributes are left out.
        ignore_parameters_and_buffers: whether nodes that read parameters and buffers are left out, and the parameters of
            layers are not listed.
        skip_node_names_in_args: whether the lists of arguments omit the names of nodes.
        parse_stack_trace: whether the lines of the program that created the nodes are shown.
        dot_graph_shape: the shape of the nodes, by default "record".
        normalize_args: whether the arguments are shown in a normal form; see `Node.normalized_arguments`.

    Raises:
        RuntimeError: `pydot` is not installed.

    Example::

        drawer = FxGraphDrawer(torch.fx.symbolic_trace(model), "model")
        drawer.get_dot_graph().write_svg("model.svg")  # this call needs the program dot of Graphviz
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        try:
            import pydot  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            raise RuntimeError(
                "fx.FxGraphDrawer: needs the package pydot, which is not installed\nhint: pip install pydot"
            ) from None
        self._pydot: Any = pydot
        self._without_attributes = ignore_getattr
        self._without_parameters = ignore_parameters_and_buffers
        self._without_names = skip_node_names_in_args
        self._with_lines = parse_stack_trace
        self._shape = dot_graph_shape or "record"
        self._normalize = normalize_args
        self._name = name
        self._graphs = {name: self._drawn(graph_module, name)}
        for path, module in graph_module.named_modules():
            if path and isinstance(module, GraphModule):
                self._graphs[f"{name}_{path}"] = self._drawn(module, f"{name}_{path}")

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """Return the drawing of the module, or of the submodule at a path, as an object of the class `pydot.Dot`."""
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> Any:
        """Return the drawing of the module."""
        return self._graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """Return the drawing of the submodule at a path. Raise KeyError if no GraphModule is at this path."""
        return self._graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """Return a dict from names to drawings. The name of a submodule's drawing ends with the path of the submodule."""
        return dict(self._graphs)

    def _drawn(self, module: GraphModule, name: str) -> Any:
        drawing = self._pydot.Dot(name, rankdir="TB")
        shown = {node for node in module.graph.nodes if self._is_shown(module, node)}
        for node in module.graph.nodes:
            if node not in shown:
                continue
            color = _COLORS.get(node.op) or _MANY[zlib.crc32(str(node.target).encode()) % len(_MANY)]
            drawing.add_node(
                self._pydot.Node(
                    node.name,
                    label=self._label(module, node),
                    shape=self._shape,
                    style='"filled,rounded"',
                    fillcolor=f'"{color}"',
                    fontcolor="#000000",
                )
            )
        for node in module.graph.nodes:
            for user in node.users:
                if node in shown and user in shown:
                    drawing.add_edge(self._pydot.Edge(node.name, user.name))
        return drawing

    def _is_shown(self, module: GraphModule, node: Node) -> bool:
        if node.op != "get_attr" or not (self._without_attributes or self._without_parameters):
            return True
        if self._without_attributes:
            return False
        value: Any = module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        return not isinstance(value, Tensor)

    def _label(self, module: GraphModule, node: Node) -> str:
        lines = [f"name=%{node.name}", f"op_code={node.op}"]
        if node.op == "call_module":
            layer = module.get_submodule(str(node.target))
            lines += [qualified_name(type(layer)), layer.extra_repr() if hasattr(layer, "extra_repr") else ""]
            if not self._without_parameters:
                tensors = [*layer.named_parameters(recurse=False), *layer.named_buffers(recurse=False)]
                lines += [f"{name}: {tuple(tensor.shape)}" for name, tensor in tensors]
        else:
            lines.append(node.target if isinstance(node.target, str) else qualified_name(node.target))
        if node.op not in ("get_attr", "output", "placeholder"):
            args, kwargs = node.args, node.kwargs
            if self._normalize and (
                found := node.normalized_arguments(module, normalize_to_only_use_kwargs=True)
            ):
                args, kwargs = found
            lines += [f"args={part}" for part in self._arguments(args)]
            lines += [f"{key}={value}" for key, value in kwargs.items() if not self._is_hidden(value)]
        if tensor := _tensor_text(node, True, False):
            lines.append(tensor)
        if self._with_lines and node.stack_trace:
            lines.append(node.stack_trace.strip().splitlines()[-1].strip())
        lines.append(f"num_users={len(node.users)}")
        text = r"\n".join(_escaped(line) for line in lines if line)
        return f'"{{{text}}}"' if self._shape == "record" else f'"{text}"'

    def _arguments(self, args: tuple[Any, ...]) -> Iterator[str]:
        return (str(value) for value in args if not self._is_hidden(value))

    def _is_hidden(self, value: Any) -> bool:
        return self._without_names and isinstance(value, Node)


def _escaped(text: str) -> str:
    return "".join(f"\\{character}" if character in '"{}<>|\\' else character for character in text)
