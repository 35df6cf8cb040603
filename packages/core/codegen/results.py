"""The key `result`: the dtype of an operator's result.

For kinds pointwise and reduce, the value is a word of WORDS. Without the key, the result has the dtype of the operands.
`floating` converts integers and bools first, and `numeric` converts only bools; the operator computes in the converted
dtype. With `truth`, the result is uint8 if the operands are uint8, otherwise bool. A view has the dtype of its input. For
the other kinds, the value is an expression in Python's syntax:

    result: input                          the dtype of an argument, which is a tensor, a number or a dtype
    result: promote(input, other)          the promoted dtype of tensors, numbers, and lists of tensors
    result: dtype or floating(input)       the argument `dtype` if the call passes it, otherwise the dtype after `or`
    result: int64                          a dtype
    result: (input, int64)                 one dtype for each result
    result: each(tensors)                  one dtype for each tensor of a list

Functions: `promote`; `each`; `floating` (integers become the default dtype), `real` (complex64 becomes float32), `complexed`
(float32 becomes complex64), `summed` (integers become int64) and `computed` (half types become float32). The name `default`
stands for the default dtype. Conditions may use an argument's `dtype` and `shape`.

The generator checks only the syntax of the expression; the tests evaluate it for every sample
(`rushlight_testing.promotion`).
"""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model import Op

WORDS = {
    "pointwise": ("", "floating", "numeric", "real", "bool"),
    "reduce": ("", "truth", "real", "summed", "int64"),
}
FUNCTIONS = ("promote", "each", "floating", "real", "complexed", "summed", "computed", "numeric")
DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
_NODES = (
    *(ast.Expression, ast.Name, ast.Constant, ast.Call, ast.BoolOp, ast.Or, ast.And, ast.UnaryOp, ast.Not, ast.IfExp),
    *(ast.Compare, ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn, ast.Tuple, ast.Subscript, ast.Load),
    ast.Attribute,
)  # fmt: skip


class ResultError(ValueError):
    """Raised for an invalid value of the key `result`. The loader adds the file and the line to the message."""


def check_result(op: Op) -> None:
    """Raise ResultError if `result` is not allowed for the kind."""
    if op.kind in WORDS:
        if op.result not in WORDS[op.kind]:
            raise ResultError(
                f"result {op.result!r} of kind {op.kind} is not one of {', '.join(WORDS[op.kind][1:])}"
            )
        return
    if not op.result:
        return
    try:
        tree = ast.parse(op.result, mode="eval")
    except SyntaxError:
        raise ResultError(f"result {op.result!r} is not an expression") from None
    known = {a.name for a in op.schema.arguments} | {*FUNCTIONS, *DTYPES, "default"}
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise ResultError(f"result {op.result!r}: {ast.unparse(node)!r} is not a part of a rule")
        if isinstance(node, ast.Attribute) and node.attr not in ("dtype", "shape"):
            raise ResultError(f"result {op.result!r}: an argument has only `.dtype` and `.shape`")
        if isinstance(node, ast.Name) and node.id not in known:
            raise ResultError(f"result {op.result!r}: {node.id!r} is not an argument, function or dtype")


def rule_of(op: Op) -> str:
    """Return the expression for the result's dtype.

    Entries of kind "pointwise" or "reduce" give one of the words in WORDS, from which the expression is derived.
    """
    if op.kind not in WORDS:
        return op.result or ("input" if op.kind == "view" else "")
    names = [a.name for a in op.schema.arguments]
    if op.kind == "pointwise":
        operands = [a.name for a in op.tensors if a.name not in op.bool_inputs]
        joint = f"promote({', '.join(operands)})"
        words = {"": joint, "bool": "bool"}
        return words.get(op.result, f"{op.result}({joint})")
    words = {"": "input", "truth": "uint8 if input.dtype == uint8 else bool", "int64": "int64"}
    own = words.get(op.result, f"{op.result}(input)")
    rule = f"dtype or {own}" if "dtype" in names else own
    return rule if len(op.schema.returns) < 2 else f"({rule}, int64)"


@cache
def _compiled(text: str) -> Any:
    return compile(text, "<result>", "eval")


def evaluate(rule: str, arguments: dict[str, Any], names: dict[str, Any]) -> Any:
    """Evaluate a rule for the arguments of a call. `names` maps names of functions and dtypes to their values."""
    return eval(_compiled(rule), {"__builtins__": {}}, names | arguments)
