"""The reference of the operators, by family. rushlight_core's generator writes the texts from its YAML."""

from __future__ import annotations

import importlib
import re
import types
from dataclasses import dataclass

import rushlight
from rushlight_core.codegen.emit_docs import emit_docs
from rushlight_core.codegen.loader import load_ops

from .stubs import Stub

# Modules whose operators carry the module's name as a prefix in the YAML.
_PREFIXES = ("linalg", "fft", "special")


@dataclass(frozen=True)
class Operator:
    """An operator that users call: its name in the YAML, the name of its section, and the text of the generator."""

    name: str
    full_name: str
    kind: str  # function or method: a directive of Sphinx's Python domain
    body: str
    summary: str
    synonyms: tuple[str, ...]
    # Whether users call a Python function instead of the operator. Then that function is documented with its module.
    fronted: bool


def families() -> dict[str, list[Operator]]:
    """Return the operators of each family, by the family's title."""
    ops = load_ops()
    pages = emit_docs(ops)
    functions = {op.name.partition(".")[0] for op in ops if "function" in op.variants}
    synonyms = {op.name: tuple(op.synonyms) for op in ops if op.synonyms}
    found: dict[str, list[Operator]] = {}
    for line in pages["index.md"].splitlines():
        if heading := re.fullmatch(r"## (.+)", line):
            operators = found[heading[1]] = []
        elif entry := re.fullmatch(r"[-*] \[`(\w+)`\]\(\w+\.md\): ?(.*)", line):
            name = entry[1]
            operators.append(
                _operator(name, pages[f"{name}.md"], entry[2], name in functions, synonyms.get(name, ()))
            )
    return found


def _operator(name: str, page: str, summary: str, is_function: bool, synonyms: tuple[str, ...]) -> Operator:
    page = re.sub(r"\A# .*\n|<!--[^>]*-->", "", page).strip()
    bare = re.findall(r"^```\n.*?^```\n", page, flags=re.DOTALL | re.MULTILINE)
    if len(bare) == 1:  # the heading of the section shows it
        page = page.replace(bare[0], "", 1)
    full_name, kind = _full_name(name) if is_function else (f"rushlight.Tensor.{name}", "method")
    home, short = split(full_name)
    public = getattr(importlib.import_module(home), short) if kind == "function" else None
    fronted = public is not None and not isinstance(public, types.BuiltinFunctionType)
    return Operator(name, full_name, kind, page.strip(), summary, synonyms, fronted)


def _full_name(name: str) -> tuple[str, str]:
    prefix, _, rest = name.partition("_")
    if prefix in _PREFIXES and hasattr(getattr(rushlight, prefix), rest):
        return f"rushlight.{prefix}.{rest}", "function"
    if hasattr(rushlight, name):
        return f"rushlight.{name}", "function"
    if hasattr(rushlight.nn.functional, name):
        return f"rushlight.nn.functional.{name}", "function"
    return f"rushlight.Tensor.{name}", "method"


def split(full_name: str) -> tuple[str, str]:
    """Return the module and the name in it; for a method, the names of its class and of the method."""
    module, _, name = full_name.rpartition(".")
    if module.endswith(".Tensor"):
        return module.removesuffix(".Tensor"), f"Tensor.{name}"
    return module, name


def page_name(family: str) -> str:
    return "operators/" + family.lower().replace(" ", "-")


def family_page(family: str, operators: list[Operator], stub: Stub) -> str:
    """Return the page of one family."""
    lines = [f"# {family}", ""]
    module = ""
    fronts = [operator for operator in operators if operator.fronted]
    for operator in operators:
        if operator.fronted:
            continue
        home, name = split(operator.full_name)
        if home != module:
            lines += [directive("py:currentmodule", [home], ""), ""]
            module = home
        if operator.kind == "method":
            signatures = stub.signatures.get(f"Tensor.{operator.name}")
        else:
            signatures = stub.signatures.get(operator.name)
        head = [f"{name}{signature}" for signature in signatures or ["(...)"]]
        lines += [directive(f"py:{operator.kind}", head, operator.body), ""]
    if fronts:
        lines += ["## Documented elsewhere", ""]
        lines += [f"* {{py:obj}}`{operator.full_name}`: {operator.summary}" for operator in fronts]
    return "\n".join(lines)


def directive(name: str, heads: list[str], body: str) -> str:
    """Return a directive of MyST, with a fence longer than any in its body; further signatures come before the body."""
    fence = ":::"
    while fence in body:
        fence += ":"
    blocks = []
    for index, head in enumerate(heads):
        lines = [f"{fence}{{{name}}} {head}", *([":no-index:"] if index else [])]
        if body and index == len(heads) - 1:
            lines += ["", body]
        blocks.append("\n".join([*lines, fence]))
    return "\n\n".join(blocks)
