"""A list of the source files, lines and C++ symbols that belong to an operator."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from .derivatives import Derivative, load_derivatives
from .emit_bodies import BODIES
from .emit_c import c_function
from .emit_kernels import functor_name
from .emit_table import _base, _slots
from .model import FOLDERS, KINDS, Form, Op

CORE = Path(__file__).parent.parent  # sources of the package; a wheel has no src/


class UnknownOperatorError(ValueError):
    """Raised if no operator has the requested name. The error message lists similar names."""


def find_derivatives() -> Path | None:
    """Return the folder of the derivative formulas, in this repository or else in the installed rushlight-autograd."""
    beside = CORE.parent / "autograd" / "derivatives"
    if beside.is_dir():
        return beside
    spec = importlib.util.find_spec("rushlight_autograd")
    installed = [Path(folder) / "derivatives" for folder in (spec and spec.submodule_search_locations) or []]
    return next((folder for folder in installed if folder.is_dir()), None)


def explain(name: str, ops: list[Op], derivatives: Path | None = None) -> str:
    """Return a description of all overloads of `name`, or of one overload ("sum.dim").

    Raises:
        UnknownOperatorError: no operator has the name.
    """
    chosen = [op for op in ops if name in (op.name, op.base, op.base + "_") or name in op.synonyms]
    if not chosen:
        import difflib

        close = difflib.get_close_matches(name, {op.base for op in ops})
        hint = f"\nhint: did you mean {', '.join(close)}?" if close else ""
        raise UnknownOperatorError(f"there is no operator {name!r}{hint}")
    formulas = {d.op.name: d for d in load_derivatives(derivatives, ops)} if derivatives else None
    return "\n\n".join(_explain(op, formulas) for op in chosen)


def _explain(op: Op, formulas: dict[str, Derivative] | None) -> str:
    rows = [
        ("declared", f"ops/{op.source.name}:{op.line}"),
        ("kind", f"{op.kind}: {KINDS[op.kind]}"),
        ("written by hand", _body(op)),
    ]
    if op.kind == "dynamic":
        rows.append(("counting kernel", _kernel(f"{op.kernel or op.body_name}_count")))
    if op.kind in ("custom", "dynamic"):
        rows.append(("CPU kernel", _kernel(op.kernel or op.body_name)))
    rows += [
        ("derivative", _derivative(op, formulas)),
        ("C++", f"#include <{op.header}>"),
        ("Python", ", ".join(_python_names(op)) or "internal"),
    ]
    if op.dunder:
        rows.append(("number slot", f"nb_{op.dunder}"))
    if op.kind in ("pointwise", "reduce", "custom", "dynamic"):
        rows.append(("kernel slots", f"rushlight::{_slots(op)}, one for each device"))
    if op.c:
        rows.append(("function of C", f"rushlight/rushlight.h: {c_function(op)}"))
    lines = [f"{op.name}: {op.summary}"]
    lines += [f"  {label + ':':17}{text}" for label, text in rows]
    lines.append("  forms, each an entry of the operator table:")
    lines += [f"    {line}" for form in op.forms() for line in _form(form)]
    return "\n".join(lines)


def _at(file: str, definition: str) -> str:
    """Return "file:line" for the first match of the pattern, or only the file if nothing matches."""
    path = CORE / file
    if path.exists():
        text = path.read_text()
        found = re.search(definition, text, re.MULTILINE)
        offset = found.start() if found else _macro_call(text, definition)
        if offset is not None:
            return f"{file}:{text.count(chr(10), 0, offset) + 1}"
    return file


_MACRO = re.compile(r"^#define (\w+)\((.*?)\)((?:.*\\\n)*.*)", re.MULTILINE)


def _macro_call(text: str, definition: str) -> int | None:
    """Return the position of the first macro call that expands to a match of `definition`.

    `text` contains the calls and the definitions of the macros.
    """
    for name, parameters, body in _MACRO.findall(text):
        lines = "\n".join(line.strip(" \\") for line in body.splitlines())
        for call in re.finditer(rf"^{name}\((.*)\)", text, re.MULTILINE):
            # Names are among the first arguments, so a comma in a later argument has no effect.
            given: dict[str, str] = dict(zip(parameters.split(", "), call.group(1).split(", "), strict=False))
            expanded = "".join(given.get(word, word) for word in re.split(r"(\w+)", lines))
            if re.search(definition, expanded.replace("##", ""), re.MULTILINE):
                return call.start()
    return None


def _body(op: Op) -> str:
    if op.kind in ("pointwise", "reduce"):
        namespace, name = FOLDERS[op.kind][0], functor_name(op)
        definition = rf"^struct {name}\b"
    else:
        namespace, name = BODIES[op.kind][0], op.body_name
        definition = rf"^\S.*\b{name}\("
    return f"{_at(op.body_file, definition)}: {namespace}::{name}"


def _kernel(name: str) -> str:
    definition = rf"^(void|int64_t) {name}\("
    for path in sorted((CORE / "src" / "cpu").rglob("*.cpp")):
        at = _at(path.relative_to(CORE).as_posix(), definition)
        if not at.endswith(".cpp"):
            return f"{at}: cpu::{name}"
    return f"src/cpu/: cpu::{name}"


def _derivative(op: Op, formulas: dict[str, Derivative] | None) -> str:
    if formulas is None:
        return "unknown: rushlight-autograd is not installed"
    if found := formulas.get(op.name):
        return f"packages/autograd/derivatives/{found.source.name}:{found.line}"
    if not op.differentiable or op.gives_truth:
        return "none: it is not differentiable"
    if op.kind == "composite":
        return "computed from the derivatives of the operators that its body calls"
    return "none: backward raises"


def _python_names(op: Op) -> list[str]:
    if "hidden" in op.variants:
        return []
    names = [op.base, *op.synonyms]
    if "inplace" in op.variants and not op.is_inplace:
        names.insert(1, op.base + "_")
    found = [f"rushlight_core.{n}" for n in names] if "function" in op.variants else []
    return found + ([f"Tensor.{n}" for n in names] if "method" in op.variants else [])


def _form(form: Form) -> list[str]:
    return [
        form.text,
        f"  rushlight::ops::{form.function}; rushlight::{form.symbol}; base {_base(form)}; hash {form.hash:#018x}",
    ]
