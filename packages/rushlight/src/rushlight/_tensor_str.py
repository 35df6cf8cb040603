"""Functions that print tensors, under PyTorch's module path.

Libraries call these functions to print their own tensor classes.
"""

from __future__ import annotations

from typing import Any

from rushlight_core import Tensor
from rushlight_core._printing import _contents, _with_suffixes, tensor_repr
from rushlight_core._printing import _options as PRINT_OPTS

__all__ = ["PRINT_OPTS"]


def _tensor_str(self: Tensor, indent: int) -> str:
    return _contents(self, indent)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool = False) -> str:
    return _with_suffixes(tensor_str, suffixes, indent)


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    return tensor_repr(inp, tensor_contents=tensor_contents)


def _str(self: Tensor, *, tensor_contents: Any = None) -> str:
    return tensor_repr(self, tensor_contents=tensor_contents)
