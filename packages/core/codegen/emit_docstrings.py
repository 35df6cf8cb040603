"""Copy the docstrings of the functions and types written in C++ from templates/_C.pyi.tmpl, for `help()`."""

from __future__ import annotations

import ast
from pathlib import Path

from .model import Op
from .writer import GENERATED

_TEMPLATE = Path(__file__).parent / "templates" / "_C.pyi.tmpl"


def emit_docstrings(ops: list[Op]) -> dict[str, str]:
    """Return the header python/docstrings.h, with a constant for each documented function and class in the template."""
    lines = [f"// {GENERATED}", "#pragma once", "", "namespace rushlight::python::docstrings {", ""]
    for node in ast.parse(_TEMPLATE.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and (text := ast.get_docstring(node)):
            name = node.name.removesuffix("_")
            lines.append(f'inline constexpr char {name}_[] = R"doc({_signature(node)}{text})doc";')
    lines += ["", "}  // namespace rushlight::python::docstrings", ""]
    return {"python/docstrings.h": "\n".join(lines)}


def _signature(node: ast.FunctionDef | ast.ClassDef) -> str:
    """Return the signature line that `inspect.signature` reads. The line is empty for a class without `__new__`."""
    function = node
    if isinstance(node, ast.ClassDef):
        made = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__new__"]
        if not made:
            return ""
        function = made[0]
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg]:
        if argument:
            argument.annotation = None
    if isinstance(node, ast.ClassDef):
        del arguments.args[0]
    return f"{node.name}({ast.unparse(arguments)})\n--\n\n"
