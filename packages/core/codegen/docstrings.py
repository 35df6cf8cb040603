"""Docstrings of operators: what `help()` and editors show."""

from __future__ import annotations

from .model import Op
from .python_signatures import form_of, signatures, text_signature, widest


def docstring(spelling: str, name: str, group: list[Op], method: bool) -> str:
    """The docstring of a function or a method, with the signature that `inspect.signature` reads before it."""
    return text_signature(spelling, widest(group, name, method), method) + body(name, group, method)


def of_synonym(spelling: str, name: str, group: list[Op], method: bool) -> str:
    """The docstring of another spelling: its signature, and where the documentation is."""
    owner = "Tensor" if method else "rushlight"
    return text_signature(spelling, widest(group, name, method), method) + f"Alias of `{owner}.{name}`."


def body(name: str, group: list[Op], method: bool) -> str:
    """The text of a name: of each overload its signature, where there are several, what it does, and an example."""
    parts: list[str] = []
    said: set[str] = set()
    for op in group:
        if len(group) > 1:
            parts += heads(op, name, method)
        for text in (op.doc.strip(), _example(op)):
            if text and text not in said:
                said.add(text)
                parts.append(text)
    return "\n\n".join(parts)


def heads(op: Op, name: str, method: bool) -> list[str]:
    """The typed signatures of an overload, as in "max(input: Tensor) -> Tensor"."""
    returns = form_of(op, name).schema.returns
    shown = []
    for signature in signatures(op, name, method):
        text = signature.typed()
        if len(returns) > 1 and all(r.name for r in returns):
            # A named tuple's class is the stubs' own: its fields say more.
            text = text.rpartition(" -> ")[0] + f" -> ({', '.join(f'{r.name}: {r.type}' for r in returns)})"
        shown.append(name + text)
    return shown


def _example(op: Op) -> str:
    if not op.example:
        return ""
    return "Example::\n\n    " + op.example.strip().replace("\n", "\n    ")
