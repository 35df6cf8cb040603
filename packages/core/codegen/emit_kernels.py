"""CPU loops: the instantiation of every functor and reducer, compiled once per CPU capability."""

from __future__ import annotations

from .emit_table import loop_name
from .model import Op
from .writer import GENERATED, shards

# Operators to a file: a reducer is compiled for many shapes and dtypes, and one edit should rebuild in seconds.
SHARD = {"pointwise": 16, "reduce": 5}


def functor_name(op: Op) -> str:
    """Of the C++ class: `Squareplus`."""
    return op.body or "".join(part.capitalize() for part in op.name.replace(".", "_").split("_"))


def emit_kernels(ops: list[Op]) -> dict[str, str]:
    """File name to text: kernels/pointwise_<family>.cpp and kernels/reduce_<family>.cpp."""
    files = {}
    for kind, header, table, maker, folder in (
        ("pointwise", "cpu/kernels/pointwise_loop.h", "LoopTable", "loops", "functors"),
        ("reduce", "cpu/kernels/reduce_loop.h", "ReduceTable", "reducers", "reducers"),
    ):
        chosen = [op for op in ops if op.kind == kind]
        for name, group in shards(chosen, SHARD[kind], lambda op: op.family).items():
            lines = [f"// {GENERATED}", f'#include "{header}"']
            lines += [f'#include "ops/{folder}/{family}.h"' for family in sorted({op.family for op in group})]
            lines += ["", "namespace rushlight::cpu::RUSHLIGHT_CPU {", ""]
            for op in group:
                functor = functor_name(op)
                lines.append(f"extern const {table} {loop_name(op)}_table;")
                lines.append(
                    f"const {table} {loop_name(op)}_table = {maker}<{folder}::{functor}>({op.types or 'All'}{{}});"
                )
            lines += ["", "}  // namespace rushlight::cpu::RUSHLIGHT_CPU", ""]
            files[f"kernels/{kind}_{name}.cpp"] = "\n".join(lines)
    return files
