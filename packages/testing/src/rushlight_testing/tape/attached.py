"""Importing this module attaches the tape to core, with the formulas of the installed rushlight-autograd.

This module is the entry point "tape" of the group "rushlight.autograd": `RUSHLIGHT_AUTOGRAD=tape python program.py`.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from rushlight_testing.tape import attach

_spec = find_spec("rushlight_autograd")  # not imported, because importing it would attach it
if _spec is None or _spec.origin is None:
    raise ImportError(
        "rushlight_testing.tape evaluates the formulas of rushlight-autograd, which is not installed\n"
        "hint: pip install rushlight-autograd"
    )
attach(Path(_spec.origin).parent / "derivatives")
