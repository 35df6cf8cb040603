"""Generate the documentation of the operators: a Markdown page for each public name, and an index."""

from __future__ import annotations

from .docstrings import facts, heads
from .emit_headers import by_base
from .model import Op
from .python_signatures import hidden
from .writer import GENERATED


def emit_docs(ops: list[Op]) -> dict[str, str]:
    """Return a dict from file names, <name>.md and index.md, to texts."""
    pages = {}
    families: dict[str, list[tuple[str, Op]]] = {}
    for name, group in sorted(by_base(ops).items()):
        visible = [op for op in group if not hidden(op)]
        if not visible or name.startswith("_"):  # private names
            continue
        pages[f"{name}.md"] = _page(name, visible)
        families.setdefault(visible[0].family, []).append((name, visible[0]))
    lines = ["# Operators", ""]
    for family, entries in sorted(families.items()):
        lines += [f"## {family.replace('_', ' ').capitalize()}", ""]
        lines += [f"- [`{name}`]({name}.md): {op.summary}" for name, op in entries]
        lines.append("")
    pages["index.md"] = "\n".join(lines)
    return pages


def _page(name: str, group: list[Op]) -> str:
    lines = [f"# {name}", ""]
    for op in group:
        method = "function" not in op.variants
        lines += ["```", *heads(op, name, method), "```", "", op.doc.strip(), ""]
        if op.example:
            lines += ["```python", op.example.strip(), "```", ""]
    method = all("function" not in op.variants for op in group)
    for title, texts in facts(name, group, method).items():
        lines += [f"**{title}**", "", *(f"- {text}" for text in texts), ""]
    first = group[0]
    notes = []
    variants = set().union(*(op.variants for op in group))
    calls = [
        text
        for key, text in (
            ("function", f"`rushlight.{name}(...)`"),
            ("method", f"`Tensor.{name}(...)`"),
            ("inplace", f"`Tensor.{name}_(...)`"),
            ("out", f"`rushlight.{name}(..., out=)`"),
        )
        if key in variants
    ]
    notes.append(f"Called as {', '.join(calls)}.")
    if first.synonyms:
        notes.append("Also known as " + ", ".join(f"`{word}`" for word in first.synonyms) + ".")
    aliases = {other: own for op in group for other, own in op.aliases.items()}
    if aliases:
        notes.append(
            "Other names of arguments: " + ", ".join(f"`{o}` for `{own}`" for o, own in aliases.items()) + "."
        )
    if nones := dict.fromkeys(name for op in group for name in op.none_is_default):
        notes.append("None selects the default of " + ", ".join(f"`{name}`" for name in nones) + ".")
    if any(op.random for op in group):
        notes.append("Draws random numbers; call `manual_seed` to make them reproducible.")
    if any(op.synchronises for op in group):
        notes.append("The host waits until the device has finished its queued work.")
    if not any(op.differentiable for op in group):
        notes.append("The operator has no gradient.")
    if first.oracle:
        notes.append(f"Tested against `{first.oracle}`.")
    return "\n".join([*lines, *(f"- {fact}" for fact in notes), "", f"<!-- {GENERATED} -->", ""])
