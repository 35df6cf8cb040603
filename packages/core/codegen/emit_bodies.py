"""Write bodies/<family>.h: declarations of the hand-written functions for the operators of <family>.yaml."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from .model import Op
from .schema import Schema
from .writer import GENERATED

# For each kind: the namespace of its bodies, which is also the folder below src/ops; the return type of a body, where ""
# means the results of the operator; and the header that declares the return type.
BODIES = {
    "view": ("views", "ViewSpec", "ops/views.h"),
    "custom": ("rules", "Outputs", "ops/rules.h"),
    "dynamic": ("rules", "Outputs", "ops/rules.h"),
    "composite": ("composites", "", "rushlight/dispatch.h"),
    "create": ("rules", "NewTensor", "ops/create.h"),
    "storage": ("storage", "", "rushlight/dispatch.h"),
}


def body_header(op: Op) -> str:
    """Return the path of the header that declares an operator's hand-written function."""
    return f"bodies/{op.family}.h"


def body_schema(op: Op) -> Schema:
    """Return the schema of an operator's hand-written function, without `requires_grad` for operators of kind create."""
    if op.kind != "create":
        return op.schema
    seen = tuple(a for a in op.schema.arguments if a.name != "requires_grad")
    return replace(op.schema, arguments=seen)


def emit_bodies(ops: list[Op]) -> dict[str, str]:
    """Return a dict from file names to texts: a header for each YAML file with operators of these kinds."""
    files = {}
    written = sorted((op for op in ops if op.kind in BODIES), key=lambda op: op.family)
    for _, group in groupby(written, key=lambda op: op.family):
        family = list(group)
        headers = {BODIES[op.kind][2] for op in family}
        if any(a.type.name == "Generator?" for op in family for a in op.schema.arguments):
            headers.add("rushlight/random.h")
        lines = [f"// {GENERATED}", "#pragma once", ""]
        lines += [f'#include "{h}"' for h in sorted(headers)]
        for kind, (namespace, result, _) in BODIES.items():
            # Several operators may share a body.
            counted = ", int64_t count" if kind == "dynamic" else ""
            declared = dict.fromkeys(
                f"{result or op.schema.cpp_return} {op.body_name}({body_schema(op).cpp_parameters()}{counted});"
                for op in family
                if op.kind == kind
            )
            declared |= dict.fromkeys(
                f"{form.schema.cpp_return} {op.body_name}_({form.schema.cpp_parameters()});"
                for op in family
                for form in op.forms()
                if op.kind == kind and op.inplace_body and form.kind == "InPlace"
            )
            if declared:
                lines += ["", f"namespace rushlight::{namespace} {{", *declared, "}"]
        files[body_header(family[0])] = "\n".join([*lines, ""])
    return files
