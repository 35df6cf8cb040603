"""Batching rules: which function in autograd's src/batch/ runs an operator in vmap, and how the function uses each argument.

`packages/autograd/batching/*.yaml` assigns rules to operators. The rules of all other operators follow from their kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .argument_types import TYPES
from .derivatives import Derivative
from .loader import EntryError, load_entries
from .model import Form, Op
from .schema import Argument
from .writer import GENERATED

_BY_KIND = {"pointwise": "pointwise", "reduce": "dims", "view": "dims", "composite": "compose"}
_SLOW = "loop"
_DIMENSIONS = {
    *("dim", "dims", "dim0", "dim1", "dim2", "axis0", "axis1", "dimension", "source", "destination"),
    *("start_dim", "end_dim"),
}


# How the rule `dims` treats a 0-d example: see struct Row in src/batch/call.h.
SCALARS = ("element", "refused", "by_index", "counted", "windows")


@dataclass(frozen=True)
class Batching:
    """The batching rule of an operator."""

    rule: str
    scalars: str = SCALARS[0]
    named: bool = True  # whether batching/*.yaml names the operator


def load_batching(folder: Path, ops: list[Op]) -> dict[str, Batching]:
    """Return a dict that maps the name of each operator to its batching rule."""
    rules: dict[str, Batching] = {}
    known = {op.name for op in ops}
    for path, entry in load_entries(folder):
        where = f"{path}:{entry.pop('__line__')}"
        if set(entry) - {"scalars"} != {"rule", "ops"} or not isinstance(entry["ops"], list):
            raise EntryError(f"{where}: an entry needs `rule` and a list `ops`, got the keys {sorted(entry)}")
        scalars = entry.get("scalars", SCALARS[0])
        if scalars not in SCALARS or ("scalars" in entry and entry["rule"] != "dims"):
            raise EntryError(
                f"{where}: `scalars` is allowed only with the rule dims, and must be one of {', '.join(SCALARS)}"
            )
        for name in entry["ops"]:
            if name not in known:
                raise EntryError(f"{where}: core has no operator {name!r}")
            if name in rules:
                raise EntryError(f"{where}: {name} has the rule {rules[name].rule!r} already")
            rules[name] = Batching(str(entry["rule"]), scalars)
    return {op.name: rules.get(op.name, Batching(_BY_KIND.get(op.kind, _SLOW), named=False)) for op in ops}


def check_batching(rules: dict[str, Batching], derivatives: list[Derivative]) -> None:
    """Check that no operator with a derivative runs on batched tensors, except composites with an entry in rules.yaml.

    Autograd records graphs of plain tensors, not of batched tensors. A composite that runs on batched tensors is therefore
    differentiated through the operators that it calls, and its own derivative is not used. If the operators that a composite
    calls have no derivatives, the gradient would be lost without an error, so rules.yaml must assign the rule `compose` to
    the composite explicitly.
    """
    for d in derivatives:
        rule = rules[d.op.name]
        if rule.rule == "batched_first" or (rule.rule == "compose" and not rule.named):
            raise EntryError(
                f"{d.source}:{d.line}: {d.op.name}: a composite with a derivative needs a rule in batching/rules.yaml "
                "that runs the operator on plain tensors; the rule may be compose only if all operators that the "
                "composite calls have derivatives"
            )


def emit_batching(rules: dict[str, Batching], ops: list[Op]) -> dict[str, str]:
    """Return a dict that maps file names to texts.

    The only file is lib/batching.cpp, with a row for each form of an operator: functional, in-place or out=.
    """
    lines = [f"// {GENERATED.replace('ops/', 'batching/*.yaml, ops/')}"]
    lines += ['#include "batch/call.h"', '#include "batch/rules.h"', ""]
    lines += ["namespace rushlight::autograd::batching {", "", "const Row rows[] = {"]
    for op in ops:
        rule, scalars = rules[op.name].rule, rules[op.name].scalars.title().replace("_", "")
        random = "true" if op.random or rule.startswith("random_") else "false"
        floats = "true" if op.result == "floating" else "false"
        for form in op.forms():
            if form.kind == "Aux":
                continue
            kinds = "".join(_kind(op, form, a) for a in form.schema.arguments)
            name, hash_ = form.name, f"{form.hash:#x}ULL"
            lines.append(
                f'    {{"{name}", {hash_}, rules::{rule}, "{kinds}", {random}, Scalars::{scalars}, {floats}}},'
            )
    lines += [
        "    {nullptr, 0, nullptr, nullptr, false, Scalars::Element, false}};",
        "",
        "}  // namespace rushlight::autograd::batching",
        "",
    ]
    return {"lib/batching.cpp": "\n".join(lines)}


def _kind(op: Op, form: Form, a: Argument) -> str:
    """Return the letter that describes the role of an argument in batching; see struct Row in src/batch/call.h."""
    if a.type.is_tensor:
        return "l" if a.type.name.endswith("[]") else "c" if a.name in op.bool_inputs else "t"
    lists = (TYPES["int[]"], TYPES["int[]?"])
    if a.name in _DIMENSIONS:
        if a.type in lists:
            if op.kind != "reduce":
                return "A" if a.type.name == "int[]?" else "D"
            return "N" if op.gives_truth else "A"
        return "n" if op.base.startswith("unsqueeze") else "d"
    if a.type in lists and a.name in ("size", "input_sizes"):
        return "s" if a.name == "size" else "i"
    return "k" if a.name == "keepdim" else "."
