"""Loops of pointwise operators and reductions: the instantiation of every functor and reducer, for the CPU and for CUDA."""

from __future__ import annotations

from dataclasses import dataclass

from .dtypes import element_types
from .emit_table import loop_name
from .model import Op
from .writer import GENERATED, shards

# Operators to a file: a reducer is compiled for many shapes and dtypes, and one edit should rebuild in seconds.
SHARD = {"pointwise": 16, "reduce": 5}


@dataclass(frozen=True)
class Target:
    """What the loops are compiled for: `headers` has their templates, `namespace` is where tables are defined."""

    headers: str
    suffix: str
    namespace: str


CPU = Target("cpu/kernels/{kind}_loop.h", ".cpp", "rushlight::cpu::RUSHLIGHT_CPU")
CUDA = Target("cuda/kernels/{kind}_loop.cuh", ".cu", "rushlight::cuda")


def functor_name(op: Op) -> str:
    """Of the C++ class: `Squareplus`."""
    return op.body or "".join(part.capitalize() for part in op.name.replace(".", "_").split("_"))


def emit_kernels(ops: list[Op], target: Target = CPU) -> dict[str, str]:
    """File name to text: kernels/pointwise_<family>.cpp and kernels/reduce_<family>.cpp, or .cu."""
    files = {}
    for kind, table, maker, folder in (
        ("pointwise", "LoopTable", "loops", "functors"),
        ("reduce", "ReduceTable", "reducers", "reducers"),
    ):
        chosen = [op for op in ops if op.kind == kind]
        for name, group in shards(chosen, SHARD[kind], lambda op: op.family).items():
            lines = [f"// {GENERATED}", f'#include "{target.headers.format(kind=kind)}"']
            lines += [f'#include "ops/{folder}/{family}.h"' for family in sorted({op.family for op in group})]
            lines += ["", f"namespace {target.namespace} {{", ""]
            for op in group:
                functor, types = functor_name(op), element_types(op.dtypes, op.result)
                lines.append(f"extern const {table} {loop_name(op)}_table;")
                lines.append(
                    f"const {table} {loop_name(op)}_table = {maker}<{folder}::{functor}>({types}{{}});"
                )
            lines += ["", f"}}  // namespace {target.namespace}", ""]
            files[f"kernels/{kind}_{name}{target.suffix}"] = "\n".join(lines)
    return files
