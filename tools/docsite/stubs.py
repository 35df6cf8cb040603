"""Read signatures from the packages' stubs, for compiled functions that have none at run time."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

# Names that stubs use instead of a plain name that has another meaning in the module or class.
_ALIASED = re.compile(r"\b_(int|float|bool|dtype|device|slice|complex|str)\b")


@dataclass
class Stub:
    """Signatures by name: of a module's functions, and of its classes' methods by `Class.method`."""

    signatures: dict[str, list[str]] = field(default_factory=dict)


@functools.cache
def read_stub(package: str) -> Stub:
    """Return the signatures in the stub of a package's compiled module; empty if it has no stub."""
    spec = find_spec(package)
    # In an editable installation, stubs and sources are in different folders.
    for folder in spec.submodule_search_locations or [] if spec else []:
        path = Path(folder) / "_C.pyi"
        if path.exists():
            return parse(path.read_text())
    return Stub()


def parse(text: str) -> Stub:
    """Return the signatures in a stub's text."""
    stub = Stub()
    for node in ast.parse(text).body:
        _read(node, "", stub)
    return stub


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
