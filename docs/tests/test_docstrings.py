"""Runs the examples of docstrings: executes the lines after `>>>`, and compares the output with the docstring's.

An example finds `torch`, `nn` and `F`, as a program has them after `import rushlight as torch`, and the names of its module.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import rushlight

PACKAGES = Path(__file__).resolve().parents[2] / "packages"
# Packages that the session `docs` installs in addition to rushlight.
SOURCES = [
    *(PACKAGES / name / "python" for name in ("core", "autograd", "profiler", "graph")),
    *(PACKAGES / name / "src" for name in ("nn", "data", "multiprocessing", "rushlight", "testing")),
]
NATIVE = PACKAGES / "core/codegen/templates/_C.pyi.tmpl"
NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:e[+-]?\d+)?")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


class Checker(doctest.OutputChecker):
    """Compares text exactly, and numbers to the digits that processors agree on."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        if not NUMBER.search(want):
            return False
        texts = [re.sub(r"\s+", "", NUMBER.sub("#", text)) for text in (want, got)]
        wanted, found = ([float(number) for number in NUMBER.findall(text)] for text in (want, got))
        return texts[0] == texts[1] and found == pytest.approx(wanted, rel=1e-3, abs=1e-4)


def documented(node: ast.AST, name: str) -> Iterator[tuple[str, str, int]]:
    """Yield the name, docstring and line of `node`'s definitions that have an example."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            text = ast.get_docstring(child)
            if text and ">>>" in text:
                yield f"{name}.{child.name}", text, child.body[0].lineno
            yield from documented(child, f"{name}.{child.name}")
        elif isinstance(child, (ast.If, ast.Try)):
            yield from documented(child, name)


def examples() -> Iterator[tuple[str, str, str, str, int]]:
    """Yield an example's name, module, docstring, file and line."""
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            for name, text, line in documented(ast.parse(path.read_text()), module):
                yield name, module, text, str(path), line
    # The docstrings of functions that are written in C++ are in the stub.
    for name, text, line in documented(ast.parse(NATIVE.read_text()), "rushlight_core._C"):
        yield name, "builtins", text, str(NATIVE), line


EXAMPLES = list(examples())


def run(text: str, names: dict[str, object], name: str, file: str = "", line: int = 0) -> str:
    """Run the example in `text`, and return doctest's report of its failures."""
    test = doctest.DocTestParser().get_doctest(text, dict(names), name, file, line)
    said: list[str] = []
    doctest.DocTestRunner(Checker(), verbose=False, optionflags=FLAGS).run(test, out=said.append)
    return "".join(said)


# These examples attach a provider of the stage "tracer" permanently, and capturing programs needs the same stage.
SEPARATE = {
    "rushlight_autograd._mutation.allow_mutation_on_saved_tensors",
    "rushlight_autograd.graph.allow_mutation_on_saved_tensors",
}


def failures_of(name: str, module: str, text: str, file: str, line: int) -> str:
    """Run an example with the names that it may use, and return doctest's report of its failures."""
    names = {**vars(importlib.import_module(module))}
    names |= {"torch": rushlight, "nn": rushlight.nn, "F": rushlight.nn.functional}
    rushlight.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(text, names, name, file, line)


@pytest.mark.parametrize(("name", "module", "text", "file", "line"), EXAMPLES, ids=[e[0] for e in EXAMPLES])
def test_example(
    name: str, module: str, text: str, file: str, line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    if name in SEPARATE:
        done = subprocess.run([sys.executable, "-P", __file__, name], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return
    failures = failures_of(name, module, text, file, line)
    assert not failures, failures


def test_separate_examples_exist() -> None:
    assert {example[0] for example in EXAMPLES} >= SEPARATE


def test_a_wrong_result_fails() -> None:
    assert not run(">>> [0.33333, 'a']\n[0.3333, 'a']\n", {}, "near")
    assert run(">>> 0.34\n0.33\n", {}, "number")
    assert run(">>> [0.3333, 'b']\n[0.3333, 'a']\n", {}, "text")
    assert run(">>> 1 / 0\n", {}, "error")
    assert run(">>> None\n1\n", {}, "nothing")


if __name__ == "__main__":  # run only the named example
    (example,) = [example for example in EXAMPLES if example[0] == sys.argv[1]]
    sys.exit(failures_of(*example) or 0)
