"""The key `onnx` of an operator's YAML entry, which describes how the operator is exported to ONNX.

The value is the word `function` if rushlight_graph has a function for the operator. For other operators, the value is an
expression of ONNX's operators in Python's syntax:

    onnx: Relu(input)                             a node Relu whose input is the tensor `input`
    onnx: LeakyRelu(input, alpha=negative_slope)  attributes are passed as keywords
    onnx: Add(input, Mul(other, alpha))           several nodes
    onnx: Sub(Exp(input), 1)                      numbers and `inf` become constants of the operands' dtype

A call is exported only if each argument that the expression does not name has its default value. Without the key, a
composite is exported as the operators that it calls, and other operators are not exported.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import Op

FUNCTION = "function"
_NODES = (ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.UnaryOp, ast.USub, ast.keyword)


class OnnxRuleError(ValueError):
    """Raised for an invalid value of the key `onnx`. The loader adds the file and the line to the error message."""


def check_onnx(op: Op) -> None:
    """Raise OnnxRuleError if `onnx` is neither `function` nor an expression of the operator's arguments."""
    if op.onnx in ("", FUNCTION):
        return
    if len(op.schema.returns) != 1:
        raise OnnxRuleError(
            f"onnx {op.onnx!r}: an expression has only one result: use `function` for several"
        )
    try:
        tree = ast.parse(op.onnx, mode="eval")
    except SyntaxError:
        raise OnnxRuleError(f"onnx {op.onnx!r} is not an expression") from None
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    known = {a.name for a in op.schema.arguments} | {"inf"}
    for node in ast.walk(tree):
        if not isinstance(node, _NODES) or (isinstance(node, ast.keyword) and node.arg is None):
            raise OnnxRuleError(f"onnx {op.onnx!r}: {ast.unparse(node)!r} is not allowed in an expression")
        if not isinstance(node, ast.Name):
            continue
        if id(node) in functions:
            if not node.id[0].isupper():
                raise OnnxRuleError(f"onnx {op.onnx!r}: {node.id!r} is not an operator of ONNX")
        elif node.id not in known:
            raise OnnxRuleError(f"onnx {op.onnx!r}: {node.id!r} is not an argument")
