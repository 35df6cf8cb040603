"""The YAML key `layout`: the arguments that determine the memory layout of the results of an operator of kind custom.

    layout: input                    a result is channels-last if `input` is channels-last, and row-major otherwise
    layout: input or weight          a result is channels-last if one of the arguments is channels-last
    layout: input of 5 dimensions    like `layout: input` if `input` has 5 dimensions, otherwise row-major
    layout: input unless contiguous  row-major if `input` has the strides of both formats, as (N, 1, H, W) may
    layout: strides of input         dimensions in the order of the input's strides, as in pointwise operators

The key applies to each result and auxiliary result that has as many dimensions as the named argument. Only tensors of 4 or 5
dimensions can be channels-last; `strides of` applies to tensors of any number of dimensions. If the key is a list, its items
are the layouts of the first results, in order. Without the key, and on devices that do not support the memory format
(`Backend::memory_formats`), results are row-major. The generated code allocates the results in this layout before the kernel
runs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .schema import cpp_name

if TYPE_CHECKING:
    from .model import Op

_FORM = re.compile(
    r"(?P<strides>strides of )?(?P<names>\w+(?: or \w+)*)(?: of (?P<dims>4|5) dimensions)?(?P<unless> unless contiguous)?"
)


class LayoutError(ValueError):
    """Raised for an invalid value of the key `layout`. `loader.py` adds the file and the line to the message."""


def check_layout(op: Op) -> None:
    """Raise LayoutError if `layout` is invalid, not allowed for the operator's kind, or refers to an unknown tensor."""
    if op.layout and op.kind != "custom":
        raise LayoutError("the key 'layout' is only allowed for operators of kind custom")
    known = [a.name for a in op.tensors if not a.type.name.endswith("[]")]
    for text in op.layout:
        match = _FORM.fullmatch(text)
        if not match:
            raise LayoutError(f"layout {text!r} has none of the forms that codegen/layouts.py describes")
        for name in match["names"].split(" or "):
            if name not in known:
                raise LayoutError(f"layout names {name!r}, which is none of the tensors {', '.join(known)}")


def layout_statements(op: Op) -> list[str]:
    """Return the C++ statements that set the memory layouts of the results, `outs`."""
    lines = []
    for number, text in enumerate(op.layout):
        match = _FORM.fullmatch(text)
        assert match
        function = "in_order_of" if match["strides"] else "in_format_of"
        which = f", {number}" if len(op.layout) > 1 else ""
        for name in map(cpp_name, match["names"].split(" or ")):
            conditions = [f"{name}.dim() == {match['dims']}"] if match["dims"] else []
            conditions += [f"!{name}.is_contiguous()"] if match["unless"] else []
            condition = f"if ({' && '.join(conditions)}) " if conditions else ""
            lines.append(f"{condition}outs.{function}({name}{which});")
    return lines
