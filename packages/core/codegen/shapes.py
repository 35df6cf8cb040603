"""The key `shapes` of a YAML entry: shapes of arguments and results that `kind` does not determine.

    shapes:
      input: (*, n, m)                  a name is a size; `*` is any number of dimensions, which are broadcast
      mat2: (*, m, k)
      result: (*, n, k)                 a size may be an expression of names and integer arguments
      values: like input                the shape of an argument
      indices: like input, k along dim  the shape of an argument, except for the size of one dimension
      result: broadcast(input, other)   the shape to which arguments broadcast
      result: reduced input             the shape of an argument after reduction over `dim`, with or without `keepdim`
      hx: () or (n)                     one of several shapes
      weight: one size for each channel any other text is copied to the documentation

A result is listed by its name. A single result without a name is listed as `result`; several results without names are
listed as `result0`, `result1` and so on. The generator only checks the names. The tests evaluate the expressions for all
samples (test_laws_shapes.py).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import Op

LIKE = re.compile(r"like (\w+)(?:, (.+) along (\w+))?")
BROADCAST = re.compile(r"broadcast\((\w+(?:, \w+)*)\)")
REDUCED = re.compile(r"reduced (\w+)")
PATTERN = re.compile(r"\([^()]*(?:\([^()]*\)[^()]*)*\)(?: or \([^()]*(?:\([^()]*\)[^()]*)*\))*")


class ShapesError(ValueError):
    """Raised for an invalid value of the key `shapes`. The loader adds the file and the line to the error message."""


def result_names(op: Op) -> list[str]:
    """Return the names under which `shapes` lists the results."""
    returns = op.schema.returns
    if len(returns) == 1:
        return [returns[0].name or "result"]
    return [one.name or f"result{i}" for i, one in enumerate(returns)]


def check_shapes(op: Op) -> None:
    """Raise ShapesError if `shapes` has a name that is neither an argument nor a result of the operator."""
    arguments = {a.name for a in op.schema.arguments}
    known = arguments | set(result_names(op))
    for name, text in op.shapes.items():
        if name not in known:
            raise ShapesError(
                f"the key shapes describes {name!r}, which is neither an argument nor one of {', '.join(result_names(op))}"
            )
        named = []
        if match := LIKE.fullmatch(text):
            named = [match[1], *([match[3]] if match[3] else [])]
        elif match := BROADCAST.fullmatch(text):
            named = match[1].split(", ")
        elif match := REDUCED.fullmatch(text):
            named = [match[1]]
        elif text.startswith(("like ", "broadcast(", "reduced ")):
            raise ShapesError(f"shapes of {name}: {text!r} cannot be read")
        for other in named:
            if other not in arguments:
                raise ShapesError(f"shapes of {name}: {other!r} is not an argument")
    if op.returns and any(name in op.shapes for name in result_names(op)):
        raise ShapesError("the key 'returns' already defines the shapes of the results")


def reduced_in_words(op: Op, argument: str = "input") -> str:
    """Describe the shape of a reduction's result. The text depends on whether the operator has `dim` and `keepdim`."""
    names = {a.name for a in op.schema.arguments}
    if "dim" not in names:
        return "()"
    rest = " (size 1 with `keepdim`)" if "keepdim" in names else ""
    return f"the shape of `{argument}` without the dimensions `dim`{rest}"


def shape_in_words(op: Op, text: str) -> str:
    """Return a description of the shape for the documentation, such as "the shape of `input`"."""
    if match := REDUCED.fullmatch(text):
        return reduced_in_words(op, match[1])
    if match := LIKE.fullmatch(text):
        other = f", with size {_code(match[2])} along `{match[3]}`" if match[2] else ""
        return f"the shape of `{match[1]}`{other}"
    if match := BROADCAST.fullmatch(text):
        names = [f"`{name}`" for name in match[1].split(", ")]
        return f"the shape to which {', '.join(names[:-1])} and {names[-1]} broadcast"
    return text


def _code(size: str) -> str:
    return size if size.isdigit() else f"`{size}`"
