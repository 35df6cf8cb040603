"""Find the integers with which the code of a model may compare sizes."""

from __future__ import annotations

import dis
import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import rushlight_core
from rushlight_core import Tensor

# Note [Sizes that code compares]
# A capture does not see the conditions of Python code. So a program would be wrong for sizes for which another branch is
# taken, unless a capture has such sizes. Conditions compare sizes with numbers that are written in the same line, or that
# attributes and globals with names in this line have. For each such number, captures with this size, with the next smaller
# and larger size, and with a much larger size follow. They find `n < 5000`, `n != 10` and `n <= self.block_size`, but no
# comparison with a number that the code computes. The much larger size is captured because an integer that is constant
# beyond a number, as `min(n, 400)` is, equals a sum with a quotient by a large divisor for the smaller sizes.

Codes = dict[CodeType, Mapping[str, Any]]
#: The largest number of elements of the arguments of a capture that is made because of a threshold, unless the example has
#: more than a sixteenth of it.
MOST_ELEMENTS = 1 << 18
#: The largest number of thresholds of one dimension.
MOST_THRESHOLDS = 8
_PACKAGES = os.path.dirname(os.path.dirname(rushlight_core.__file__))
_LIBRARY = sysconfig.get_paths()["stdlib"]


@contextmanager
def watched(codes: Codes) -> Iterator[None]:
    """Return a context manager that adds each code object that this thread runs, and its globals, to `codes`.

    Code of the standard library and of this library is not added. If a profiler is active, no code is
    added.
    """

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            codes.setdefault(frame.f_code, frame.f_globals)

    if sys.getprofile() is not None:
        yield
        return
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        for code in [code for code, names in codes.items() if _is_of_a_library(code, names)]:
            del codes[code]


def _is_of_a_library(code: CodeType, names: Mapping[str, Any]) -> bool:
    package = str(names.get("__name__", "")).partition(".")[0]
    if package.startswith("rushlight") or code.co_filename.startswith("<frozen"):
        return True
    return code.co_filename.startswith(_LIBRARY) and "site-packages" not in code.co_filename


def thresholds(codes: Codes, module: Any) -> list[int]:
    """Return the integers that lines with comparisons contain, or read from attributes or globals."""
    attributes = _attributes(module)
    found: set[int] = set()
    for code, names in codes.items():
        instructions = list(_with_lines(code))
        lines = {line for line, one in instructions if _compares(one)}
        for line, one in instructions:
            if line not in lines:
                continue
            if one.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
                found.update(_integers(one.argval))
            elif one.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                found |= attributes.get(str(one.argval), set())
            elif one.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                found.update(_integers(names.get(one.argval)))
    return sorted(found)


def _with_lines(code: CodeType) -> Iterator[tuple[int | None, dis.Instruction]]:
    line = None
    starts = dict(dis.findlinestarts(code))
    for one in dis.get_instructions(code):
        line = starts.get(one.offset, line)
        yield line, one


def _compares(one: dis.Instruction) -> bool:
    return one.opname == "COMPARE_OP" or (one.opname == "LOAD_GLOBAL" and one.argval in ("max", "min"))


def _integers(value: Any) -> list[int]:
    parts = value if type(value) in (tuple, list) else [value]
    return [part for part in parts if type(part) is int]


def _attributes(module: Any) -> dict[str, set[int]]:
    """Return the integers among the attributes of a module, its submodules and their configurations, by name."""
    found: dict[str, set[int]] = {}
    modules = [part for _, part in module.named_modules()] if hasattr(module, "named_modules") else []
    known = {id(part) for part in modules}
    for part in modules:
        for owner in (part, *vars(part).values()):
            if (owner is not part and id(owner) in known) or isinstance(owner, (type, Tensor)):
                continue
            for name, value in (getattr(owner, "__dict__", None) or {}).items():
                if integers := _integers(value):
                    found.setdefault(name, set()).update(integers)
    return found
