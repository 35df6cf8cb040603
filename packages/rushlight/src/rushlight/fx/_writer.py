"""The Python code of a graph."""

from __future__ import annotations

import enum
import inspect
import keyword
import math
import types
import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import rushlight as torch
from rushlight.fx._codegen import CodeGen, _in_order
from rushlight.fx._names import name_of
from rushlight.fx._variables import _Names
from rushlight.fx.node import Node, _tensor_text

if TYPE_CHECKING:
    from rushlight.fx.graph import Graph

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


class _Style(NamedTuple):
    """Options for the generated code of a graph. See `Graph.python_code`."""

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
        last_user = {used: node for node in self._graph.nodes for used in node.all_input_nodes}
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
                names = [self._variables[used] for used in node.all_input_nodes if last_user[used] is node]
                if node not in last_user:
                    names.append(self._variables[node])
                if names:
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
        """Return a type as code, or an empty string if the code needs a global name for the type."""
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
        """Return a comment with the program line that created a node, and with entries of `node.meta`."""
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
