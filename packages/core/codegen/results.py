"""The key `result`: the dtype of an operator's result.

For kinds pointwise and reduce, the value is one of the words in WORDS. Without the key, a pointwise operator returns the
dtype to which its operands promote, and a reduction returns the dtype of its input. The words `floating`,
`numeric`, `real` and `summed` apply the function of the same name (see below) to this default; with
`floating` and `numeric`, the operator also computes in the resulting dtype. `bool` and `int64` are dtypes.
With `truth`, the result is uint8 for an input of dtype uint8, and bool for other inputs. A view has the dtype
of its input. For the other kinds, the value is an expression in Python's syntax:

    result: input                          the dtype of an argument, which is a tensor, a number or a dtype
    result: promote(input, other)          the promoted dtype of tensors, numbers, and lists of tensors
    result: dtype or floating(input)       the argument `dtype` if the call passes it, otherwise the dtype after `or`
    result: int64                          a dtype
    result: (input, int64)                 one dtype for each result
    result: each(tensors)                  one dtype for each tensor of a list

Besides `promote` and `each`, the expression may call the functions `floating` (integers and bools become the default
dtype), `numeric` (bools become int64), `real` (complex64 becomes float32), `complexed` (float32 becomes complex64), `summed`
(integers and bools become int64) and `computed` (half types become float32). The name `default` denotes the default dtype.
Conditions may use an argument's `dtype` and `shape`.

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
    """Raised for an invalid value of the key `result`. The loader adds the file and the line to the error message."""


def check_result(op: Op) -> None:
    """Raise ResultError if the key `result` of an operator has a value that is invalid for its kind."""
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
            raise ResultError(f"result {op.result!r}: {ast.unparse(node)!r} is not allowed here")
        if isinstance(node, ast.Attribute) and node.attr not in ("dtype", "shape"):
            raise ResultError(f"result {op.result!r}: only `.dtype` and `.shape` of an argument can be used")
        if isinstance(node, ast.Name) and node.id not in known:
            raise ResultError(f"result {op.result!r}: {node.id!r} is not an argument, function or dtype")


def rule_of(op: Op) -> str:
    """Return the expression for the result's dtype.

    For kinds "pointwise" and "reduce", the expression is derived from the word in WORDS that the key `result` contains.
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
    """Return the dtype of a call's result: the value of the expression `rule`; see `rule_of`.

    `arguments` maps the names of arguments to their values, and `names` maps the other names in the rule to
    objects.
    """
    return eval(_compiled(rule), {"__builtins__": {}}, names | arguments)
