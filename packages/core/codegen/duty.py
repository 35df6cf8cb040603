"""A report on how each operator runs on a device: by a kernel of the device, or in one of the other ways listed in WAYS.

Each line lists the dtypes that the operator accepts, which are the same on all devices (decision 0032), and the dtypes for
which the device's kernel is not defined (decision 0051).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from .model import Op

WAYS = {
    "kernel": "a kernel of the device",
    "composite": "calls other operators",
    "view": "computes sizes and strides, without access to memory",
    "service": "allocates or copies memory, by functions that every backend has",
    "copy": "computed on the CPU and copied to the device",
    "shape only": "computes sizes, strides and dtype, without values",
    "refused": "raises NotImplementedError",
}
SHARED = ("fill", "range", "steps", "powers", "eye")  # the kernels that fill new tensors: see ops/create.h
_BY_KERNEL = ("pointwise", "reduce", "custom", "dynamic")


def way(op: Op, device: str, kernels: Collection[str]) -> str:
    """Return how an operator runs on a device, as a key of WAYS. `kernels` contains the names of the device's kernels."""
    if op.kind in ("composite", "view"):
        return op.kind
    if op.kind == "storage":
        return "service"
    if device == "meta":
        return "refused" if op.kind == "dynamic" else "shape only"
    if device == "cpu":
        return "kernel"
    if op.kind in _BY_KERNEL:
        return "kernel" if op.name in kernels else "refused"
    # Each call selects one of the shared kernels, so a device must have all of them.
    return "kernel" if all(name in kernels for name in SHARED) else "copy"


def duty(ops: list[Op], device: str, kernels: Mapping[str, Collection[str]]) -> str:
    """Return a line for each operator, followed by the number of operators for each of the WAYS.

    `kernels` maps the name of each kernel to the dtypes that the kernel does not support.
    """

    def dtypes(op: Op) -> str:
        lacks = kernels.get(op.name)
        return f"{op.dtypes}, lacks {' '.join(lacks)}" if lacks else str(op.dtypes)

    ways = {op.name: way(op, device, kernels) for op in ops}
    counts = Counter(ways.values())
    width = max(map(len, ways))
    lines = [f"{op.name:{width}}  {op.kind:9}  {ways[op.name]:10}  {dtypes(op)}" for op in ops]
    lines += ["", f"{len(ops)} operators on {device}:"]
    lines += [f"{counts[name]:5}  {name}: {text}" for name, text in WAYS.items() if counts[name]]
    return "\n".join(lines)
