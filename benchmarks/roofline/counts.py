"""Count the operations and bytes of a step's operators, and the time in oneDNN."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

# Operators that make a view, and move no bytes.
VIEWS = frozenset(
    [
        "view",
        "reshape",
        "flatten",
        "unflatten",
        "transpose",
        "permute",
        "t",
        "expand",
        "squeeze",
        "unsqueeze",
        "select",
        "slice",
        "narrow",
        "split",
        "chunk",
        "unbind",
        "detach",
        "alias",
        "as_strided",
        "view_as",
        "expand_as",
        "movedim",
        "swapaxes",
        "diagonal",
    ]
)
_SIZES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "bfloat16": 2, "float16": 2, "int16": 2}


@dataclass
class Operator:
    """All calls of one operator in a step. seconds: without the operators inside it."""

    name: str
    calls: int = 0
    flops: int = 0
    bytes: int = 0
    seconds: float = 0.0


def operators(events: Iterable[Any]) -> list[Operator]:
    """Return the operators of a recorded step by name: those that call no other operators and do the work."""
    found: dict[str, Operator] = {}
    for event in events:
        if event.kind != "operator" or any(child.kind == "operator" for child in event.cpu_children):
            continue
        one = found.setdefault(event.name, Operator(event.name))
        one.calls += 1
        one.flops += event.flops
        one.bytes += traffic(event)
        one.seconds += event.self_cpu_time_total / 1e6
    return list(found.values())


def traffic(event: Any) -> int:
    """Return the bytes that a call must move without caches: every tensor that it reads, and its first result."""
    name = event.name
    if name in VIEWS:
        return 0
    arguments = [list(_tensors(argument)) for argument in event.arguments or ()]
    sizes = [sum(map(_size, tensors)) for tensors in arguments]
    if name.startswith(
        "_fused_"
    ):  # reads parameters, gradients and moments, and writes parameters and moments
        return 2 * sum(sizes) - sizes[1]
    if name == "embedding":  # reads the rows that it returns
        return 2 * event.nbytes + sum(sizes[1:])
    return sum(sizes) + event.nbytes


def _tensors(argument: Any) -> Iterator[Any]:
    if isinstance(argument, tuple) and not hasattr(argument, "dtype"):
        for one in argument:
            yield from _tensors(one)
    elif hasattr(argument, "dtype"):
        yield argument


def _size(tensor: Any) -> int:
    size = _SIZES.get(tensor.dtype, 1)
    for length in tensor.shape:
        size *= length
    return size


def roof(found: Iterable[dict[str, Any]], ceilings: dict[str, float]) -> float:
    """Return the seconds of a step in which each operator reaches one of the machine's two ceilings."""
    return sum(_roof(one, ceilings) for one in found)


def furthest(found: Iterable[dict[str, Any]], ceilings: dict[str, float], count: int) -> list[dict[str, Any]]:
    """Return the operators that exceed their smallest possible times by the most seconds."""
    return sorted(found, key=lambda one: _roof(one, ceilings) - one["seconds"])[:count]


def _roof(one: dict[str, Any], ceilings: dict[str, float]) -> float:
    return max(one["flops"] / ceilings["gflops"], one["bytes"] / ceilings["gbytes"]) / 1e9


def vendor_seconds(text: str) -> list[float]:
    """Return the seconds that oneDNN reports per step, from the output of a process with ONEDNN_VERBOSE=profile_exec.

    Steps are between lines "step". A line of oneDNN is "onednn_verbose,[v1,]primitive,exec,…,milliseconds".
    """
    steps: list[float] = []
    for line in text.splitlines():
        fields = line.strip().split(",")
        if fields == ["step"]:
            steps.append(0.0)
        elif fields[0] in ("onednn_verbose", "dnnl_verbose") and "exec" in fields[:4] and steps:
            steps[-1] += float(fields[-1]) / 1e3
    return steps
