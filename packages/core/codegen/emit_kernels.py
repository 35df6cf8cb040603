"""Generate C++ files that instantiate the loops of all pointwise operators and reductions."""

from __future__ import annotations

from dataclasses import dataclass

from .dtypes import element_types
from .emit_table import loop_name
from .model import Op
from .writer import GENERATED, shards

# Number of operators in a file. A reducer is compiled for many shapes and dtypes, and a change should be rebuilt in seconds.
SHARD = {"pointwise": 16, "reduce": 7}


@dataclass(frozen=True)
class Target:
    """A device for which loops are compiled: the header of the loop templates, and the loops' namespace."""

    headers: str
    suffix: str
    namespace: str


CPU = Target("cpu/kernels/{kind}_loop.h", ".cpp", "rushlight::cpu::RUSHLIGHT_CPU")
CUDA = Target("cuda/kernels/{kind}_loop.cuh", ".cu", "rushlight::cuda")
_CUDA_RESULTS = {"": "Compute", "floating": "Compute", "numeric": "Compute", "real": "Real", "bool": "Bool"}


def functor_name(op: Op) -> str:
    """Return the name of the C++ functor or reducer of an operator, such as `Squareplus`."""
    return op.body or "".join(part.capitalize() for part in op.name.replace(".", "_").split("_"))


def _with_their_bodies(ops: list[Op]) -> list[Op]:
    """Return the operators in an order in which operators with the same functor or reducer are adjacent.

    Operators with the same functor are then usually in one file, where the functor's loops are compiled only
    once.
    """
    first: dict[str, int] = {}
    return sorted(ops, key=lambda op: first.setdefault(functor_name(op), len(first)))


def emit_kernels(ops: list[Op], target: Target = CPU) -> dict[str, str]:
    """Return a dict from file names, kernels/{pointwise,reduce}_<family>.cpp or .cu, to contents."""
    files = {}
    for kind, table, maker, folder in (
        ("pointwise", "LoopTable", "loops", "functors"),
        ("reduce", "ReduceTable", "reducers", "reducers"),
    ):
        chosen = _with_their_bodies([op for op in ops if op.kind == kind])
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


def emit_cuda_list(compiled: list[Op], ops: list[Op]) -> dict[str, str]:
    """Return a dict that maps a file name to the C++ text of two tables for the CUDA plug-in.

    The first table contains the kernels of the pointwise operators and reductions in `compiled`. The second table contains
    the hash of the schema of every operator in `ops` that has a kernel.
    """
    loops = [op for op in compiled if op.kind in ("pointwise", "reduce")]
    lines = [
        f"// {GENERATED}",
        '#include "cuda/kernel_list.h"',
        '#include "cuda/pointwise.h"',
        '#include "cuda/reduce.h"',
    ]
    lines += ["", "namespace rushlight::cuda {", ""]
    for op in loops:
        table = "LoopTable" if op.kind == "pointwise" else "ReduceTable"
        lines.append(f"extern const {table} {loop_name(op)}_table;")
    lines += ["", "namespace {", ""]
    for op in loops:
        own, shown = op.name.replace(".", "_"), op.base.lstrip("_")
        inputs = [a for a in op.schema.arguments if a.type.is_tensor]
        if op.kind == "pointwise":
            bits = sum(1 << i for i, a in enumerate(inputs) if a.name in op.bool_inputs)
            count = len(op.schema.arguments) - len(inputs)
            described = (
                f'constexpr Pointwise {own}_op{{"{shown}", &{loop_name(op)}_table, {len(inputs)}, {bits}, {count},'
                f" Pointwise::Result::{_CUDA_RESULTS[op.result]}}};"
            )
        else:
            known = {"input", "dim", "keepdim", "dtype"}
            count = sum(a.name not in known for a in op.schema.arguments)
            described = f'constexpr Reducer {own}_op{{"{shown}", &{loop_name(op)}_table, {count}}};'
        run = "run_pointwise" if op.kind == "pointwise" else "run_reduce"
        lines += [
            described,
            f"BackendStatus {own}_kernel(const KernelArgs* args) {{ return {run}({own}_op, *args); }}",
        ]
    lines += ["", "constexpr NamedKernel kLoops[] = {"]
    lines += [f'    {{"{op.name}", {op.name.replace(".", "_")}_kernel}},' for op in loops]
    lines += ["};", "constexpr NamedSchema kSchemas[] = {"]
    with_kernels = [op for op in ops if op.kind in ("pointwise", "reduce", "custom", "dynamic")]
    forms = [op.forms()[0] for op in with_kernels]
    lines += [f'    {{"{form.name}", {form.hash:#x}ULL}},' for form in forms]
    lines += ["};", "", "}  // namespace", ""]
    lines += ["const std::span<const NamedKernel> loop_kernels = kLoops;"]
    lines += [
        "const std::span<const NamedSchema> schemas = kSchemas;",
        "",
        "}  // namespace rushlight::cuda",
        "",
    ]
    return {"loop_list.cpp": "\n".join(lines)}
