"""Describe the shapes and dtypes of an operator's results, given its kind, key `result` and key `dtypes`."""

from __future__ import annotations

import ast

from .model import Op
from .results import DTYPES, rule_of
from .schema import Return
from .shapes import reduced_in_words, result_names, shape_in_words

_SETS = {
    "any": ["all dtypes except float8"],
    "real": ["bool", "integers", "floating-point numbers"],
    "number": ["integers", "floating-point numbers", "complex numbers"],
    "integer": ["integers"],
    "floating": ["floating-point numbers"],
    "complex": ["complex numbers"],
    "wide": ["float32", "float64"],
    "lapack": ["float32", "float64", "complex64", "complex128"],
    "float8": ["float8"],
}


def accepted(op: Op) -> str:
    """Describe the dtypes that the operator accepts, as in "floating-point numbers and complex numbers"."""
    taken = [word for word in op.dtypes.split() if not word.startswith("-")]
    without = [word.removeprefix("-") for word in op.dtypes.split() if word.startswith("-")]
    if taken == ["any", "float8"]:
        return "all dtypes"
    text = _joined([name for word in taken for name in _SETS.get(word, [word])])
    return text + (f" except {_joined(without)}" if without else "")


def _joined(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def dtype_of_result(op: Op) -> list[str]:
    """Describe the dtype of each result, or the common dtype of a list of results.

    Return an empty list if the operator has no rule for the dtypes of its results.
    """
    rule = rule_of(op)
    if not rule:
        return []
    node = ast.parse(rule, mode="eval").body
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    return [_words(one, op) for one in nodes]


def _words(node: ast.expr, op: Op) -> str:
    if isinstance(node, ast.Name):
        if node.id == "default":
            return "the default dtype"
        if node.id in DTYPES:
            return node.id
        kind = next(a.type.name for a in op.schema.arguments if a.name == node.id)
        return f"`{node.id}`" if kind.startswith("dtype") else f"the dtype of `{node.id}`"
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and len(node.values) == 2:
        first, rest = node.values
        return f"{_words(first, op)} if it is given, otherwise {_words(rest, op)}"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if text := _of_function(node.func.id, node.args, op):
            return text
    return f"`{ast.unparse(node)}`"  # conditions are shown as Python


def _of_function(name: str, args: list[ast.expr], op: Op) -> str:
    if name == "promote":
        names = [a.id for a in args if isinstance(a, ast.Name) and a.id not in (*DTYPES, "default")]
        if len(names) < len(args):
            return ""
        if len(names) == 1:
            (argument,) = (a for a in op.schema.arguments if a.name == names[0])
            several = argument.type.name.endswith("[]")
            return f"the {'promoted ' * several}dtype of `{names[0]}`"
        return f"the promoted dtype of {_joined([f'`{name}`' for name in names])}"
    (inner,) = args
    text = _words(inner, op)
    return {
        "each": f"{text}, separately for each tensor",
        "floating": f"{text}; the default dtype for integers and bool",
        "complexed": f"the complex dtype that corresponds to {text}",
        "real": f"{text}; for complex numbers, the dtype of their parts",
        "summed": f"{text}; int64 for integers and bool",
        "numeric": f"{text}; int64 for bool",
        "computed": f"{text}; float32 for float16 and bfloat16",
    }[name]


def shape_of_result(op: Op) -> str:
    """Return a description of the result's shape if the operator's kind determines it, otherwise an empty text."""
    if op.kind == "pointwise":
        operands = [a.name for a in op.tensors]
        if len(operands) == 1:
            return f"the shape of `{operands[0]}`"
        return f"the shape to which {_joined([f'`{name}`' for name in operands])} broadcast"
    return reduced_in_words(op) if op.kind == "reduce" else ""


def returned(op: Op) -> list[str]:
    """Return a sentence for each result, with its shape and dtype, or the text of the key `returns` if there is one."""
    if op.returns:
        return [op.returns]
    names = result_names(op)
    shapes = [
        shape_in_words(op, op.shapes[name]) if name in op.shapes else shape_of_result(op) for name in names
    ]
    if op.is_inplace:
        return [_inplace(shape) for shape in shapes]
    dtypes = dtype_of_result(op)
    results = op.schema.returns
    if dtypes and len(dtypes) < len(results):
        dtypes = dtypes * len(results)
    return [
        text for i, result in enumerate(results) if (text := _sentence(result, dtypes[i : i + 1], shapes[i]))
    ]


def _inplace(shape: str) -> str:
    return (
        f"The tensor itself. Shape: {shape}." if shape else "The tensor itself, whose shape does not change."
    )


def _sentence(result: Return, dtype: list[str], shape: str) -> str:
    plain = {"bool": "A bool.", "int": "An int.", "float": "A float.", "Scalar": "A number."}
    what = plain.get(result.type, "A tensor." if result.type == "Tensor" else "A tuple of tensors.")
    facts = [f"shape: {shape}"] if shape and result.type not in plain else []
    facts += [f"dtype: {dtype[0]}"] if dtype and result.type not in plain else []
    text = what + "".join(f" {fact[0].upper()}{fact[1:]}." for fact in facts)
    return f"{result.name}: {text}" if result.name else text
