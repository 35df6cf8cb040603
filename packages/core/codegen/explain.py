"""Every file and symbol behind an operator: for whoever wants to change one."""

from __future__ import annotations

from .emit_table import _base, _slots
from .model import KINDS, Form, Op

_BODIES = {
    "pointwise": "src/ops/functors/{family}.h: functors::{functor}",
    "reduce": "src/ops/reducers/{family}.h: reducers::{functor}",
    "view": "src/ops/views/: views::{body}",
    "custom": "src/ops/rules/: rules::{body}; src/cpu/: cpu::{kernel}",
    "composite": "src/ops/composites/: composites::{body}",
    "direct": "src/ops/direct/: direct::{body}",
}


class UnknownOperatorError(ValueError):
    """There is no operator of that name; the text lists similar ones."""


def explain(name: str, ops: list[Op]) -> str:
    """A text on all overloads of `name`, or on one of them ("sum.dim"). Raises UnknownOperatorError."""
    chosen = [op for op in ops if name in (op.name, op.base, op.base + "_") or name in op.synonyms]
    if not chosen:
        import difflib

        close = difflib.get_close_matches(name, {op.base for op in ops})
        hint = f"\nhint: did you mean {', '.join(close)}?" if close else ""
        raise UnknownOperatorError(f"there is no operator {name!r}{hint}")
    return "\n\n".join(map(_explain, chosen))


def _explain(op: Op) -> str:
    functor = op.body or "".join(part.capitalize() for part in op.name.replace(".", "_").split("_"))
    body = _BODIES[op.kind].format(
        family=op.family, functor=functor, body=op.body_name, kernel=op.kernel or op.body_name
    )
    rows = [
        ("declared", f"ops/{op.source.name}:{op.line}"),
        ("kind", f"{op.kind}: {KINDS[op.kind]}"),
        ("written by hand", body),
        ("derivative", f"packages/autograd/derivatives/*.yaml, entry `op: {op.name}`"),
        ("C++", f"#include <{op.header}>"),
        ("Python", ", ".join(_python_names(op)) or "internal"),
    ]
    if op.dunder:
        rows.append(("number slot", f"nb_{op.dunder}"))
    if op.kind in ("pointwise", "reduce", "custom"):
        rows.append(("kernel slots", f"rushlight::{_slots(op)}, one for each device"))
    lines = [f"{op.name}: {op.doc.strip().splitlines()[0]}"]
    lines += [f"  {label + ':':17}{text}" for label, text in rows]
    lines.append("  forms, each an entry of the operator table:")
    lines += [f"    {line}" for form in op.forms() for line in _form(form)]
    return "\n".join(lines)


def _python_names(op: Op) -> list[str]:
    names = [op.base + "_" * (form.kind == "InPlace" and not op.is_inplace) for form in op.forms()[:2]]
    names = (
        list(dict.fromkeys([*names, *op.synonyms])) if "inplace" in op.variants else [op.base, *op.synonyms]
    )
    if "hidden" in op.variants:
        return []
    found = [f"rushlight_core.{n}" for n in names] if "function" in op.variants else []
    return found + ([f"Tensor.{n}" for n in names] if "method" in op.variants else [])


def _form(form: Form) -> list[str]:
    return [
        form.text,
        f"  rushlight::ops::{form.function}; rushlight::{form.symbol}; base {_base(form)}; hash {form.hash:#018x}",
    ]
