"""Signatures from the packages' stubs: of functions that are compiled, and have none of their own at run time."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

# Names that stubs use where the module or the class has another meaning for the plain one.
_ALIASED = re.compile(r"\b_(int|float|bool|dtype|device|slice|complex|str)\b")


@dataclass
class Stub:
    """Signatures by name: of a module's functions, and of its classes' methods by `Class.method`."""

    signatures: dict[str, list[str]] = field(default_factory=dict)


def read_stub(module: str) -> Stub:
    """Return the signatures of `module.pyi`; of nothing, where the module has no stub."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return Stub()
    origin = Path(spec.origin)
    name = "__init__" if spec.submodule_search_locations else module.rpartition(".")[2]
    paths = [origin.parent / f"{name}.pyi"]
    # An editable installation keeps stubs apart from the sources.
    paths += [Path(entry) / f"{name}.pyi" for entry in _package_folders(module)]
    for path in paths:
        if path.exists():
            return parse(path.read_text())
    return Stub()


def parse(text: str) -> Stub:
    """Return the signatures in a stub's text."""
    stub = Stub()
    for node in ast.parse(text).body:
        _read(node, "", stub)
    return stub


def _package_folders(module: str) -> list[str]:
    package = module.rpartition(".")[0] or module
    spec = find_spec(package)
    return list(spec.submodule_search_locations or []) if spec else []


def _read(node: ast.stmt, prefix: str, stub: Stub) -> None:
    if isinstance(node, ast.FunctionDef):
        arguments = node.args
        for group in (arguments.posonlyargs, arguments.args):
            if prefix and group and group[0].arg in ("self", "cls"):
                del group[0]
                break
        result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        text = _ALIASED.sub(r"\1", f"({ast.unparse(arguments)}){result}")
        found = stub.signatures.setdefault(prefix + node.name, [])
        if text not in found:
            found.append(text)
    elif isinstance(node, ast.ClassDef) and not prefix:
        for child in node.body:
            _read(child, f"{node.name}.", stub)
