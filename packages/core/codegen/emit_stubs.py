"""Type stubs: `_C.pyi` and `__init__.pyi`, made from operators' signatures and from templates."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from pathlib import Path

from .docstrings import help_text
from .model import Op
from .python_signatures import form_of, hidden, names_of, result_name, return_type, signatures, synonyms
from .writer import GENERATED

_TEMPLATES = Path(__file__).resolve().parent / "templates"

# Number slots to special methods: name, and whether there is a reflected method.
_SPECIAL = {
    "add": ("add", True),
    "subtract": ("sub", True),
    "multiply": ("mul", True),
    "true_divide": ("truediv", True),
    "floor_divide": ("floordiv", True),
    "remainder": ("mod", True),
    "matrix_multiply": ("matmul", True),
    "power": ("pow", True),
    "and": ("and", True),
    "or": ("or", True),
    "xor": ("xor", True),
    "lshift": ("lshift", True),
    "rshift": ("rshift", True),
    "negative": ("neg", False),
    "positive": ("pos", False),
    "absolute": ("abs", False),
    "invert": ("invert", False),
    **{name: (name, False) for name in ("lt", "le", "gt", "ge")},
}


def emit_stubs(ops: list[Op]) -> dict[str, str]:
    """Return a dict that maps file names to texts: python/_C.pyi and python/__init__.pyi."""
    functions: list[str] = []
    methods: list[str] = []
    exported: list[str] = []
    results: list[str] = []
    for name, group in sorted(names_of(ops).items()):
        visible = [op for op in group if not hidden(op)]
        for spelling in [name, *synonyms(name, group)]:
            as_function = [
                s for op in visible if "function" in op.variants for s in _signatures(op, name, False)
            ]
            as_method = [s for op in visible if "method" in op.variants for s in _signatures(op, name, True)]
            if as_function:
                functions += _overloads(spelling, as_function, _help(spelling, name, visible, False), "")
                exported.append(spelling)
            if as_method:
                methods += _overloads(spelling, as_method, _help(spelling, name, visible, True), "    ")
        for op in visible:
            results += _result_class(op, name)
    for op in ops:
        if op.dunder in _SPECIAL:
            methods += _special_methods(op)
    text = (_TEMPLATES / "_C.pyi.tmpl").read_text()
    for mark, lines in (("results", results), ("methods", methods), ("functions", functions)):
        before, _, after = re.split(rf"^( *# \[{mark}\]\n)", text, flags=re.M)
        text = before + "\n".join([*lines, ""]) + after
    public = sorted({*exported, *re.findall(r"^(?:def|class) ([a-z]\w*)", text, re.M), *_variables(text)})
    package = (_TEMPLATES / "__init__.pyi.tmpl").read_text()
    # Some names have a wrapper in Python, which the template imports. The names of `linalg` and `fft` are in those modules.
    fronts = set(re.findall(r"^from \.\w+ import \w+ as (\w+)", package, re.M))
    public = [name for name in public if name not in fronts and not name.startswith(("linalg_", "fft_"))]
    imports = "\n".join(f"from ._C import {name} as {name}" for name in public)
    package = package.replace("# [operators]", imports)
    names_of_package = re.findall(r" as ([A-Za-z]\w*)$", package, re.M)
    package += "\n__all__ = [\n" + "".join(f'    "{name}",\n' for name in names_of_package) + "]\n"
    header = f"# {GENERATED}\n"
    return {"python/_C.pyi": header + text, "python/__init__.pyi": header + package}


def _variables(text: str) -> list[str]:
    return re.findall(r"^([a-z]\w*): ", text, re.M)


def _type(stub: str) -> str:
    """Replace types such as `int`, which is also the name of a dtype in `_C`, by aliases such as `_int`."""
    return re.sub(r"\b(int|float|bool|dtype|device)\b", r"_\1", stub)


def _result_class(op: Op, name: str) -> list[str]:
    fields = form_of(op, name).schema.returns
    if len(fields) < 2 or not all(r.name for r in fields):
        return []
    lines = [f"class {result_name(op)}(NamedTuple):"]
    return [*lines, *(f"    {r.name}: {_type(return_type(r.type))}" for r in fields), ""]


def _signatures(op: Op, name: str, method: bool) -> list[str]:
    """Return signatures such as "(self, other: Tensor) -> Tensor".

    There are two signatures if a list may also be passed as separate arguments."""
    found = []
    for signature in signatures(op, name, method):
        parameters = tuple(replace(p, annotation=_type(p.annotation)) for p in signature.parameters)
        text = replace(signature, parameters=parameters, returns=_type(signature.returns)).typed()
        if method:
            text = text.replace("(", "(self, " if parameters else "(self", 1)
        found.append(text)
    return found


def _help(spelling: str, name: str, group: list[Op], method: bool) -> str:
    kind = "method" if method else "function"
    return help_text(spelling, name, [op for op in group if kind in op.variants], method)


def _overloads(name: str, signatures: list[str], text: str, indent: str) -> list[str]:
    """Return a stub for each signature. The first stub has the docstring, which editors show for all overloads."""
    signatures = list(dict.fromkeys(signatures))
    mark = [f"{indent}@overload"] if len(signatures) > 1 else []
    first, *others = signatures
    quoted = textwrap.indent(f'r"""{text}"""', indent + "    ", lambda line: bool(line.strip()))
    lines = [*mark, f"{indent}def {name}{first}:", *quoted.splitlines(), f"{indent}    ..."]
    return lines + [line for s in others for line in (*mark, f"{indent}def {name}{s}: ...")]


def _special_methods(op: Op) -> list[str]:
    name, reflected = _SPECIAL[op.dunder]
    unary = sum(a.type.is_tensor for a in op.schema.arguments) == 1
    if unary:
        return [f"    def __{name}__(self) -> Tensor: ..."]
    if all(a.type.name == "Tensor" for a in op.schema.arguments):
        return [f"    def __{name}__(self, other: Tensor, /) -> Tensor: ..."]
    lines = [f"    def __{name}__(self, other: Tensor | Number, /) -> Tensor: ..."]
    if reflected:
        lines.append(f"    def __r{name}__(self, other: Number, /) -> Tensor: ...")
    if reflected and "inplace" in op.variants:
        lines.append(f"    def __i{name}__(self, other: Tensor | Number, /) -> Self: ...")
    return lines
