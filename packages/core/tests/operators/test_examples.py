"""The example of every operator runs and gives the result that it shows."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core import codegen
from rushlight_core.codegen.loader import load_ops

EXAMPLES = {
    op.name: op.example for op in load_ops(Path(codegen.__file__).parent.parent / "ops") if op.example
}
NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:e[+-]?\d+)?")


class Torch:
    """Core under the name `torch`, as examples use it, with a stand-in for `cuda`, which only rushlight has."""

    class cuda:
        @staticmethod
        def is_available() -> bool:
            return core.devices.device_count("cuda") > 0

    def __getattr__(self, name: str) -> Any:
        return getattr(core, name)


def text_and_numbers(shown: str) -> tuple[str, list[float]]:
    """Return the text without numbers and spaces, and the numbers, whose last digits depend on the processor."""
    shown = re.sub(r"\s+", " ", shown)
    return NUMBER.sub("#", shown).replace(" ", ""), [float(n) for n in NUMBER.findall(shown)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str) -> None:
    code, _, shown = EXAMPLES[name].strip().partition("  # ")
    names = {"torch": Torch()}
    program = ast.parse(code)
    last = program.body.pop()
    exec(compile(program, name, "exec"), names)
    assert isinstance(last, ast.Expr)
    result = repr(eval(compile(ast.Expression(last.value), name, "eval"), names))
    if shown:
        found, wanted = text_and_numbers(result), text_and_numbers(shown)
        assert found[0] == wanted[0]
        assert found[1] == pytest.approx(wanted[1], rel=1e-3, abs=1e-5)
