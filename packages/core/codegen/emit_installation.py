"""Emit the C++ file that installs the derivatives, and that lists the operators without a derivative."""

from __future__ import annotations

from .derivatives import Derivative
from .loader import EntryError
from .model import Op
from .writer import GENERATED


def emit_installation(names: list[str], known: dict[str, Derivative], ops: list[Op]) -> str:
    """Return lib/install.cpp, which installs the derivatives of all files, and lists the operators without a derivative."""
    lines = [f"// {GENERATED.replace('ops/', 'derivatives/')}", '#include "record.h"', ""]
    lines += ["namespace rushlight::autograd {", *(f"void install_{name}();" for name in names), ""]
    lines += [
        "// Operators without a formula, and out= forms: see record.h.",
        "static const Unrecorded unrecorded[] = {",
    ]
    for op in ops:
        for form in op.forms():
            if form.kind == "Aux" or (form.kind != "Out" and op.name in known):
                continue
            if form.kind != "Out" and (op.kind == "composite" or not op.differentiable or op.gives_truth):
                continue
            if not any(a.type.is_tensor for a in form.schema.arguments):
                continue
            if form.kind == "InPlace":
                raise EntryError(
                    f"{op.source}:{op.line}: {op.name}: an in-place operator needs a derivative formula"
                )
            constant = form.kind == "Out" and (not op.differentiable or op.gives_truth)
            outs = len(op.schema.returns) if constant else 0
            lines.append(f'    {{"{form.name}", {form.hash:#x}ULL, {outs}}},')
    lines += ["    {nullptr, 0, 0}};", "", "// In-place operators whose result is bool."]
    lines.append("static const Unrecorded overwriting[] = {")
    for op in ops:
        for form in op.forms():
            if form.kind == "InPlace" and op.gives_truth:
                lines.append(f'    {{"{form.name}", {form.hash:#x}ULL, 0}},')
    lines += [
        "    {nullptr, 0, 0}};",
        "",
        "void install_all() {",
        *(f"    install_{name}();" for name in names),
    ]
    lines += ["    install_unrecorded(unrecorded);", "    install_unrecorded(overwriting);", "}", ""]
    lines += ["}  // namespace rushlight::autograd", ""]
    return "\n".join(lines)
