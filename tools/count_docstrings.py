"""Count the public names whose documentation lacks an example, shapes or errors, and compare with docs/readability.md.

    python tools/count_docstrings.py                 prints the table of this tree
    python tools/count_docstrings.py --tree FOLDER   prints the table of another tree, such as an older commit
    python tools/count_docstrings.py --check         fails if a count is higher than in the page
    python tools/count_docstrings.py --write         writes the table into the page

Sources are parsed, not imported, so that a tree need not be built; only the generator of the operators' pages runs. The
count covers these pages, and the functions and classes that a package exports: those in its own `__all__` or stub templates,
and those that another package with an `__all__`, or the meta-package's table of modules, imports from it.

* An example is a block of code.
* Shapes are expected if an argument or the result is a tensor.
* Errors are expected for operators, and for functions and classes that contain a `raise` statement.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "readability.md"
HEADING = "## Now"  # the heading in the page; the table below it is checked
KINDS = ("example", "shapes", "errors")

_EXAMPLE = re.compile(r"::\n\n|>>> |```")
_SHAPES = re.compile(r"\bshape[sd]?\b|\bsizes?\b|\(N\b|\(\*", re.IGNORECASE)
_ERRORS = re.compile(r"\braise[sd]?\b", re.IGNORECASE)

# Runs in another tree's packages/core, whose generator writes a page for every operator.
_PAGES = """
import json
from codegen.emit_docs import emit_docs
from codegen.loader import load_ops
print(json.dumps(emit_docs(load_ops())))
"""


@dataclass
class Count:
    """The number of names for which something is expected, and the number that lack it."""

    expected: int = 0
    lacking: int = 0

    def add(self, has: bool) -> None:
        self.expected += 1
        self.lacking += not has


def count(tree: Path) -> dict[str, dict[str, Count]]:
    """Return the counts of every package of a tree, and of the operators, by kind."""
    found = {"operators": _operators(tree)}
    packages = sorted((tree / "packages").iterdir())
    for package in packages:
        exported = _exported(package, packages)
        counts = {kind: Count() for kind in KINDS}
        for node in _definitions(package):
            if node.name in exported:
                _add(counts, node)
        if counts["example"].expected:
            found[package.name] = counts
    return found


def _operators(tree: Path) -> dict[str, Count]:
    done = subprocess.run(
        [sys.executable, "-c", _PAGES], cwd=tree / "packages/core", capture_output=True, text=True, check=True
    )
    counts = {kind: Count() for kind in KINDS}
    for name, page in json.loads(done.stdout).items():
        if name != "index.md":
            counts["example"].add("```python" in page.partition("\n")[2])
            counts["shapes"].add(bool(_SHAPES.search(page.partition("**Raises**")[0])))
            counts["errors"].add(bool(_ERRORS.search(page)))
    return counts


def _sources(package: Path, pattern: str) -> Iterator[Path]:
    for folder in ("src", "python", "codegen/templates"):
        yield from sorted((package / folder).rglob(pattern))


def _exported(package: Path, packages: list[Path]) -> set[str]:
    """Return the names that a package exports: its own, and those that other packages or the table of modules import."""
    names: set[str] = set()
    modules = _import_names(package)
    for other in packages:
        for path in _sources(other, "*.pyi.tmpl"):
            if other == package:
                names |= set(re.findall(r"\bas (\w+)$", path.read_text(), re.MULTILINE))
        for path in _sources(other, "*.py"):
            text = path.read_text()
            if "__all__" not in text and path.name != "_table.py":
                continue
            nodes = ast.parse(text).body
            if path.name == "_table.py":
                names |= _in_table(nodes, modules)
            elif other == package:
                names |= {word for node in nodes if _sets_all(node) for word in _words(node)}
            else:
                for node in nodes:
                    if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in modules:
                        names |= {alias.name for alias in node.names}
    return names


def _import_names(package: Path) -> set[str]:
    folders = (package / "src", package / "python")
    return {path.stem for folder in folders if folder.is_dir() for path in folder.iterdir()}


def _in_table(nodes: list[ast.stmt], modules: set[str]) -> set[str]:
    """Return the names that the table of modules re-exports from `modules`, as in "module": "name name:alias"."""
    names: set[str] = set()
    for part in (part for node in nodes for part in ast.walk(node)):
        for key, value in zip(part.keys, part.values, strict=True) if isinstance(part, ast.Dict) else ():
            if (
                isinstance(key, ast.Constant)
                and not isinstance(value, ast.Dict)
                and str(key.value).split(".")[0] in modules
            ):
                names |= set(_words(value))
    return names


def _words(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from re.split(r"[\s:]+", part.value)


def _sets_all(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


Definition = ast.FunctionDef | ast.ClassDef


def _definitions(package: Path) -> Iterator[Definition]:
    for path in _sources(package, "*.py"):
        if "templates" not in path.parts:
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, Definition) and not node.name.startswith("_") and not _is_overload(node):
                    yield node


def _is_overload(node: Definition) -> bool:
    """Return whether `node` only gives type checkers a signature; the function itself has the docstring."""
    return any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list)


def _add(counts: dict[str, Count], node: Definition) -> None:
    methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    documented = [node, *(method for method in methods if method.name == "__init__")]
    text = "\n".join(ast.get_docstring(part) or "" for part in documented)
    counts["example"].add(bool(_EXAMPLE.search(text)))
    if any(_takes_tensors(part) for part in [node, *methods] if isinstance(part, ast.FunctionDef)):
        counts["shapes"].add(bool(_SHAPES.search(text)))
    if any(isinstance(part, ast.Raise) and part.exc for part in ast.walk(node)):
        counts["errors"].add(bool(_ERRORS.search(text)))


def _takes_tensors(function: ast.FunctionDef) -> bool:
    arguments = function.args
    annotations = [
        function.returns,
        *(each.annotation for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]),
    ]
    return any("Tensor" in ast.unparse(annotation) for annotation in annotations if annotation)


def table(counts: dict[str, dict[str, Count]]) -> str:
    """Return the counts as a table in Markdown, with "lacking of expected" in each cell."""
    lines = ["| part | without example | without shapes | without errors |", "|---|--:|--:|--:|"]
    for name, kinds in counts.items():
        cells = [f"{kinds[kind].lacking} of {kinds[kind].expected}" for kind in KINDS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def grown(counts: dict[str, dict[str, Count]], page: str) -> list[str]:
    """Return a sentence for each count that is above the one in the page's table, or that the table lacks."""
    _, heading, text = page.partition(f"{HEADING}\n")
    if not heading:
        return [f"the page has no heading {HEADING!r}"]
    rows = {
        name: [int(cell) for cell in cells]
        for name, *cells in re.findall(
            r"^\| ([\w-]+) \| (\d+) of \d+ \| (\d+) of \d+ \| (\d+) of \d+ \|$", text, re.MULTILINE
        )
    }
    problems = []
    for name, kinds in counts.items():
        for kind, most in zip(KINDS, rows.get(name, [0, 0, 0]), strict=True):
            if kinds[kind].lacking > most:
                problems.append(
                    f"{name}: {kinds[kind].lacking} public names are documented without {kind}, {most} in the page"
                )
    return problems


def with_table(page: str, shown: str) -> str:
    """Return the page with its first table below the heading replaced."""
    before, heading, after = page.partition(f"{HEADING}\n")
    return before + heading + re.sub(r"(^\|.*\n)+", f"{shown}\n", after, count=1, flags=re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tree", type=Path, default=ROOT, help="the folder of a checkout")
    parser.add_argument("--check", action="store_true", help="fail if a count is higher than in the page")
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    arguments = parser.parse_args()
    counts = count(arguments.tree)
    print(table(counts))
    if arguments.write:
        PAGE.write_text(with_table(PAGE.read_text(), table(counts)))
    problems = grown(counts, PAGE.read_text()) if arguments.check else []
    for problem in problems:
        print(problem)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
