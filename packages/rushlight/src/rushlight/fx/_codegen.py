"""Generation of the function header and the return statement in the code of a graph."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.fx import _pytree as fx_pytree
from rushlight.fx.node import Argument
from rushlight_core import pytree

_NAME = re.compile(
    r"\**(\w+)"
)  # of a parameter that is written with its stars, its annotation and its default

TransformCodeFunc = Callable[[list[str]], list[str]]


class CodeGen:
    r"""Generates the function header and the return statement of a graph's code; see `Graph.set_codegen`.

    With a subclass, the generated code can have other arguments and results than the graph. Such a subclass
    also overrides `process_inputs` and `process_outputs`, which Interpreter calls.

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
        """Return the header of the function, and any lines that define `free_vars`.

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
        """Return the values of the graph's placeholders if the generated function is called with `args`."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return the result of the generated function if the graph's output is `outputs`."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return the global names that the generated header and return statement use, with their values."""
        return []


def _before_comment(parameter: str) -> str:
    """Return the text of a parameter with a comma after it, but before its comment if it has one."""
    code, mark, comment = parameter.partition("  # ")
    return f"{code},{mark}{comment}"


def _in_order(parameters: list[str]) -> list[str]:
    """Make parameters without a default keyword-only if they follow a parameter with a default."""
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
    """The structure (pytree) of the arguments and of the result of a traced function.

    `orig_args` are the names of the function's parameters, with the stars of `*args` and `**kwargs`.
    """

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


class _PyTreeCodeGen(CodeGen):
    """Generates code that takes and returns nested containers (pytrees), and passes their leaves to the graph."""

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
        """Return the header with the parameters of the traced function, and a line that flattens the arguments to leaves."""
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
        """Return a statement that packs the graph's results into the container that the traced function returns."""
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        return f"return pytree.tree_unflatten({repr_fn(output_args)}, {self._root}._out_spec)"

    def process_inputs(self, *args: Any) -> Any:
        """Return the leaves of the nested containers `args`, which are the arguments of the traced function."""
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
        """Return the graph's results, packed into the container that the traced function returns."""
        spec = self.pytree_info.out_spec
        return outputs if spec is None else pytree.tree_unflatten(outputs, spec)

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return the modules that the generated code uses, and default values that cannot be written as literals."""
        defaults = [
            (f"_default_{name}", value)
            for name, value in self._defaults.items()
            if self._default(name) == f" = _default_{name}"
        ]
        return [("fx_pytree", fx_pytree), ("pytree", pytree), *defaults]
