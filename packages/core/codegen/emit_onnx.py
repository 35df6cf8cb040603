"""Emit the module of rushlight_graph that contains the rules for the export of operators to ONNX."""

from __future__ import annotations

from .model import Op
from .writer import GENERATED


def emit_onnx(ops: list[Op]) -> dict[str, str]:
    """Return the generated files, as a dict from file names to texts. The only file is _operators.py."""
    rules, forms, composites, dynamic = [], [], [], []
    for op in ops:
        if not op.onnx:
            if op.kind == "composite":
                composites += [form.name for form in op.forms() if form.kind != "Aux"]
            elif op.kind == "dynamic":
                dynamic.append(op.name)
            continue
        arguments = op.schema.arguments
        names = tuple(a.name for a in arguments)
        defaults = {a.name: a.default for a in arguments if not a.required}
        operands = tuple(a.name for a in op.tensors if a.name not in op.bool_inputs)
        if op.kind != "pointwise":
            operands = ()
        rules.append(
            f"    {op.name!r}: Rule({op.onnx!r}, {names!r}, {defaults!r}, {operands!r}, {op.result!r}),"
        )
        for form in op.forms():
            if form.kind == "Aux":
                continue
            if form.name != op.name:
                forms.append(f"    {form.name!r}: {op.name!r},")
    lines = [
        f'"""Rules that export operators to ONNX. {GENERATED}"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Any, NamedTuple",
        "",
        "",
        "class Rule(NamedTuple):",
        '    """The export of an operator: an expression or `function`, the names of the arguments, and their defaults. For',
        '    element-wise operators, also the arguments that are converted to one dtype, and the word for the result."""',
        "",
        "    onnx: str",
        "    arguments: tuple[str, ...]",
        "    defaults: dict[str, Any]",
        "    operands: tuple[str, ...]",
        "    result: str",
        "",
        "",
        "RULES: dict[str, Rule] = {",
        *rules,
        "}",
        "",
        "#: Maps in-place and out= forms to their operators.",
        "FORMS: dict[str, str] = {",
        *forms,
        "}",
        "",
        "#: Composites without a rule, which are exported as the operators that they call.",
        "COMPOSITES: tuple[str, ...] = (",
        *(f"    {name!r}," for name in composites),
        ")",
        "",
        "#: Operators with results whose sizes depend on values.",
        "DYNAMIC: tuple[str, ...] = (",
        *(f"    {name!r}," for name in dynamic),
        ")",
        "",
    ]
    return {"_operators.py": "\n".join(lines)}
