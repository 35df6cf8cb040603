"""rushlight/ops/<name>.h: the C++ declarations of each operator, one header per name."""

from __future__ import annotations

from itertools import groupby

from .model import Form, Op
from .writer import GENERATED

# Headers that programs use in addition to the headers of operators.
_GENERAL = ("dispatch", "error", "gradients", "operators", "print", "random", "scalar", "tensor")


def by_base(ops: list[Op]) -> dict[str, list[Op]]:
    """Return a dict that maps each name to its overloads, in the order of the YAML files."""
    return {k: list(g) for k, g in groupby(sorted(ops, key=lambda o: o.base), key=lambda o: o.base)}


def emit_headers(ops: list[Op]) -> dict[str, str]:
    """Return a dict that maps file names to texts: one header for each name."""
    groups = by_base(ops)
    lines = [
        f"// {GENERATED}",
        "// Includes tensors and all operators, for programs that prefer one header.",
        "#pragma once",
        "",
    ]
    includes = [f"rushlight/{name}.h" for name in _GENERAL] + [f"rushlight/ops/{base}.h" for base in groups]
    files = {"include/rushlight/all.h": "\n".join([*lines, *(f'#include "{name}"' for name in includes), ""])}
    for base, group in groups.items():
        forms = [f for op in group for f in op.forms()]
        lines = [
            f"// {GENERATED}",
            "#pragma once",
            "",
            '#include "rushlight/dispatch.h"',
        ]
        if any(a.type.name == "Generator?" for f in forms for a in f.schema.arguments):
            lines.append('#include "rushlight/random.h"')
        lines += ["", "namespace rushlight {"]
        lines += [f"extern RL_API Operator {f.symbol};" for f in forms]
        lines += ["", "namespace ops {", ""]
        for form in forms:
            lines += _function(form)
        lines += ["}  // namespace ops", "}  // namespace rushlight", ""]
        files[f"include/rushlight/ops/{base}.h"] = "\n".join(lines)
    return files


def _function(form: Form) -> list[str]:
    schema = form.schema
    plain = form.kind in ("Functional", "InPlace")
    call = ", ".join(filter(None, [form.symbol, schema.cpp_arguments()]))
    comment = form.op.summary if plain else f"See {form.op.base}; {_FORM_NOTES[form.kind]}."
    return [
        f"/// {comment}",
        f"inline {schema.cpp_return} {form.function}({schema.cpp_parameters(defaults=plain)}) {{",
        f"    return Call<{schema.cpp_signature}>::call({call});",
        "}",
        "",
    ]


_FORM_NOTES = {
    "Out": "writes to the given tensors",
    "Aux": "also returns the hidden results that formulas use",
}
