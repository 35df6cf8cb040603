"""Programs: inputs, calls and a mode, and their text as a script."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

# How a program is run: as it is; with gradients of its inputs; with gradients of those gradients; under func.jvp; under
# func.vmap.
MODES = ("plain", "backward", "backward2", "jvp", "vmap")
FLOATS = ("float64", "float32", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")


@dataclass(frozen=True)
class Ref:
    """A variable as an argument: `x0`, or `v3[1]` for one of several results of a call."""

    name: str


@dataclass(frozen=True)
class Named:
    """An attribute of the library as an argument, such as a dtype: `float32` is `torch.float32`."""

    name: str


@dataclass(frozen=True)
class Input:
    """A tensor that the program begins with. With `batched` the first dimension is vmap's dimension."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    values: tuple[Any, ...]
    requires_grad: bool = False
    batched: bool = False


def example(one: Input, k: int = 0) -> Input:
    """Return the input without the dimension of vmap: its example number `k`."""
    if not one.batched:
        return one
    count = len(one.values) // one.shape[0] if one.shape[0] else 0
    return replace(one, shape=one.shape[1:], values=one.values[k * count : (k + 1) * count], batched=False)


@dataclass(frozen=True)
class Call:
    """One call and the variable that holds its result.

    `path` is the called function: `torch.add`, `.add_` of the first argument, `[]` (indexing), `[]=` (assignment) or an
    operator sign such as `+`.
    """

    op: str
    path: str
    result: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        """Whether the call changes an existing tensor."""
        return self.path == "[]=" or "out" in self.kwargs or self.path.endswith("_")


def family(op: str) -> str:
    """Return the name of an operator without its in-place or `out=` form: `ldexp` of `ldexp_` and `ldexp.out`."""
    return op.removesuffix(".out").rstrip("_")


@dataclass(frozen=True)
class Program:
    inputs: tuple[Input, ...]
    calls: tuple[Call, ...]
    mode: str = "plain"
    default_dtype: str = "float32"  # of functions of integers and numbers

    def refs(self) -> Iterator[str]:
        """Yield the variables that calls read, with repetitions."""
        for call in self.calls:
            yield from refs_in((call.args, call.kwargs))


def refs_in(value: Any) -> Iterator[str]:
    """Yield the variables of an argument, `v3` for `v3[1]`."""
    if isinstance(value, Ref):
        yield value.name.partition("[")[0]
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from refs_in(one)
    elif isinstance(value, dict):
        yield from refs_in(tuple(value.values()))
    elif isinstance(value, slice):
        yield from refs_in((value.start, value.stop, value.step))


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return an argument with `change` applied to every part that is not a container."""
    if isinstance(value, (tuple, list)):
        return type(value)([mapped(one, change) for one in value])
    if isinstance(value, dict):
        return {name: mapped(one, change) for name, one in value.items()}
    return change(value)


def substituted(call: Call, before: str, after: str) -> Call:
    """Return the call with one variable replaced by another."""

    def change(value: Any) -> Any:
        return Ref(after) if isinstance(value, Ref) and value.name == before else value

    return replace(call, args=mapped(call.args, change), kwargs=mapped(call.kwargs, change))


def examples(program: Program) -> list[Program]:
    """Return the program as it is run without jvp or vmap: for each example of vmap, or once."""
    count = next((one.shape[0] for one in program.inputs if one.batched), 1)
    return [
        replace(program, mode="plain", inputs=tuple(example(one, k) for one in program.inputs))
        for k in range(count)
    ]


# --- as text ---


def literal(value: Any) -> str:
    """Return an argument as Python source."""
    if isinstance(value, Ref):
        return value.name
    if isinstance(value, Named):
        return f"torch.{value.name}"
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    if isinstance(value, tuple):
        return f"({', '.join(literal(v) for v in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(literal(v) for v in value)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, complex) and not (math.isfinite(value.real) and math.isfinite(value.imag)):
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if value is Ellipsis:
        return "..."
    return repr(value)


def expression(call: Call) -> str:
    """Return the call as Python source, without the variable that it is assigned to."""
    texts = [literal(a) for a in call.args]
    if call.path == "[]":
        return f"{texts[0]}[{_index(call.args[1])}]"
    if call.path == "[]=":
        return f"{texts[0]}[{_index(call.args[1])}] = {texts[2]}"
    if not call.path[0].isalpha() and call.path[0] != ".":
        left = f"({texts[0]})" if texts[0][0] == "-" else texts[0]  # `**` binds before the sign
        return f"{left} {call.path} {texts[1]}"
    named = [f"{name}={literal(value)}" for name, value in call.kwargs.items()]
    if call.path[0] == ".":
        return f"{texts[0]}{call.path}({', '.join(texts[1:] + named)})"
    return f"{call.path}({', '.join(texts + named)})"


def _index(index: Any) -> str:
    parts = index if isinstance(index, tuple) else (index,)
    shown = []
    for part in parts:
        if isinstance(part, slice):
            ends = ["" if end is None else literal(end) for end in (part.start, part.stop)]
            shown.append(":".join(ends) + ("" if part.step is None else f":{literal(part.step)}"))
        else:
            shown.append(literal(part))
    return ", ".join(shown) + ("," if isinstance(index, tuple) and len(parts) == 1 else "") if shown else "()"


def statement(call: Call) -> str:
    text = expression(call)
    return text if call.path == "[]=" else f"{call.result} = {text}"


def tensor_text(one: Input) -> str:
    """Return the tensor as Python source."""
    if not one.shape:
        values = literal(one.values[0])
    else:
        values = "[" + ", ".join(literal(v) for v in one.values) + "]"
    text = f"torch.tensor({values}, dtype=torch.{one.dtype})"
    if len(one.shape) > 1 or 0 in one.shape:
        text += f".reshape({literal(one.shape)}).clone()"
    return text


def script(program: Program, comment: str = "") -> str:
    """Return a self-contained script that prints the compared values."""
    lines = [f"# {line}" if line else "#" for line in comment.splitlines()]
    lines.append("import rushlight as torch  # of PyTorch: import torch")
    lines.append("")
    leaf = program.mode.startswith("backward")
    for one in program.inputs:
        grad = ".requires_grad_()" if leaf and one.requires_grad else ""
        lines.append(f"{one.name} = {tensor_text(one)}{grad}")
    body = [statement(call) for call in program.calls]
    outputs = ", ".join(
        [*(one.name for one in program.inputs), *(c.result for c in program.calls if c.path != "[]=")]
    )
    if program.mode in ("plain", "backward", "backward2"):
        lines += body
        lines += [f"print({outputs}, sep='\\n')"]
    if leaf:
        lines += _backward_lines(program)
    if program.mode in ("jvp", "vmap"):
        names = ", ".join(one.name for one in program.inputs)
        lines += ["", "", f"def f({names}):"]
        if program.mode == "vmap":
            lines += [f"    {text}" for text in [*body, f"return {outputs}"]]
            dims = tuple(0 if one.batched else None for one in program.inputs)
            lines += ["", "", f"print(*torch.func.vmap(f, in_dims={dims!r})({names}), sep='\\n')"]
        else:
            lines += [f"    {text}" for text in body]
            lines += [
                f"    results = torch.utils._pytree.tree_leaves(({outputs},))",
                "    return tuple(t for t in results if torch.is_floating_point(t) or torch.is_complex(t))",
            ]
            moving = [one for one in program.inputs if moves(one)]
            given = ", ".join(one.name for one in moving)
            fixed = ", ".join(f"{one.name}={one.name}" for one in program.inputs if not moves(one))
            lines[lines.index(f"def f({names}):")] = (
                f"def f({given}{', ' if given and fixed else ''}{fixed}):"
            )
            tangents = ", ".join(f"weights({one.name})" for one in moving)
            comma = "," if len(moving) == 1 else ""
            lines += ["", *_weights_lines(), "", ""]
            lines.append(f"print(*torch.func.jvp(f, ({given}{comma}), ({tangents}{comma})), sep='\\n')")
    return "\n".join(lines) + "\n"


def moves(one: Input) -> bool:
    """Return whether an input has a tangent under jvp."""
    return one.requires_grad and one.dtype in (*FLOATS, *COMPLEX)


def _weights_lines() -> list[str]:
    return [
        "",
        "def weights(t):",
        "    ramp = torch.arange(1, t.numel() + 1, dtype=torch.float64) / (t.numel() + 1)",
        "    return ramp.reshape(t.shape).to(t.dtype)",
    ]


def _backward_lines(program: Program) -> list[str]:
    leaves = [one.name for one in program.inputs if one.requires_grad]
    names = [one.name for one in program.inputs] + [c.result for c in program.calls if c.path != "[]="]
    lines = [*_weights_lines(), "", ""]
    lines.append("found, queue = [], [" + ", ".join(names) + "]")
    lines += [
        "for t in queue:",
        "    if isinstance(t, (tuple, list)):",
        "        queue.extend(t)",
        "    elif isinstance(t, torch.Tensor) and t.requires_grad:",
        "        found.append((t * weights(t)).sum())",
        "loss = sum(torch.real(t).to(torch.float64) for t in found)",
    ]
    comma = "," if len(leaves) == 1 else ""
    inputs = f"({', '.join(leaves)}{comma})"
    if program.mode == "backward2":
        lines.append(f"first = torch.autograd.grad(loss, {inputs}, create_graph=True, allow_unused=True)")
        lines.append(
            "loss = sum(torch.real((g * weights(g)).sum()).to(torch.float64) for g in first if g is not None)"
        )
    lines.append(f"print(*torch.autograd.grad(loss, {inputs}, allow_unused=True), sep='\\n')")
    return lines
