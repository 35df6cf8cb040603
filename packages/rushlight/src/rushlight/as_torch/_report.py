"""`python -m rushlight.as_torch report FILE...`: list the torch names that programs use and that are missing or differ here.

Programs are parsed, not run. In a notebook (`.ipynb`), only the code cells are parsed, and their lines are
numbered consecutively. Names are resolved from the imports of torch and its modules: after
`import torch.nn.functional as F`, `F.relu` is `torch.nn.functional.relu`. Methods of tensors are not found,
because the type of an object is known only when the program runs.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, NoReturn

import rushlight


class Use(NamedTuple):
    """A name of torch, and the first line of a program that uses it."""

    name: str
    line: int


class _Uses(ast.NodeVisitor):
    """Collects the names of torch in a program."""

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}
        self.found: dict[str, int] = {}

    def _use(self, name: str, line: int) -> None:
        self.found[name] = min(line, self.found.get(name, line))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if _is_torchs(alias.name):
                # `import torch.nn` binds `torch`, and `import torch.nn as n` binds `torch.nn`.
                self.aliases[alias.asname or "torch"] = alias.name if alias.asname else "torch"
                self._use(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or not _is_torchs(node.module or ""):
            return
        for alias in node.names:
            name = node.module if alias.name == "*" else f"{node.module}.{alias.name}"
            self._use(str(name), node.lineno)
            if alias.name != "*":
                self.aliases[alias.asname or alias.name] = str(name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts = []
        value: ast.expr = node
        while isinstance(value, ast.Attribute):
            parts.append(value.attr)
            value = value.value
        if isinstance(value, ast.Name) and value.id in self.aliases:
            self._use(".".join([self.aliases[value.id], *reversed(parts)]), node.lineno)
        else:
            self.generic_visit(node)


def _is_torchs(name: str) -> bool:
    return name == "torch" or name.startswith("torch.")


def uses(text: str) -> list[Use]:
    """Return the names of torch that the program `text` uses.

    Raises:
        SyntaxError: the text is not a Python program.
    """
    visitor = _Uses()
    tree = ast.parse(text)
    # Visit imports first, because a function above an import may use its name.
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            visitor.visit(node)
    visitor.visit(tree)
    return [
        Use(name, line) for name, line in sorted(visitor.found.items(), key=lambda item: (item[1], item[0]))
    ]


class Found(NamedTuple):
    """The result of looking up a torch name in rushlight.

    If rushlight lacks the name, `missing` is the shortest prefix of the name that does not exist: for
    `torch.nn.gone.f`, it is `torch.nn.gone` if rushlight has no `nn.gone`. Otherwise, `missing` is None, and
    `value` is the object with this name.

    An attribute of a class or function is not looked up, because it may exist only in instances; in this
    case, `value` is the class or function.
    """

    missing: str | None
    value: object = None


def find(name: str) -> Found:
    """Look up a torch name in rushlight. Attributes of classes and functions are not looked up."""
    parts = name.split(".")[1:]
    value: object = rushlight
    for i, part in enumerate(parts):
        module = f"rushlight.{'.'.join(parts[: i + 1])}"
        try:
            value = getattr(value, part)
        except AttributeError:
            if not _is_module(value) or not _exists(module):
                return Found(".".join(["torch", *parts[: i + 1]]))
            value = import_module(module)
        if not _is_module(value):
            break
    return Found(None, value)


def only_raises(value: object) -> bool:
    """Return whether a function or class is annotated with NoReturn, because every call of it raises an error."""
    function = getattr(value, "__init__", None) if isinstance(value, type) else value
    return getattr(function, "__annotations__", {}).get("return") in (NoReturn, "NoReturn")


def _is_module(value: object) -> bool:
    return isinstance(value, type(sys))


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


# What differs -----------------------------------------------------------------------------------------------


def differences() -> str:
    """Return the text of the documentation page about differences, from the installed package or the repository."""
    here = Path(__file__).resolve()
    for page in (
        here.with_name("differences.md"),
        *(parent / "docs" / "differences.md" for parent in here.parents),
    ):
        if page.is_file():
            return page.read_text()
    return ""


class Difference(NamedTuple):
    """A list item of the documentation page about differences, with the torch names that it describes.

    The names are those in the bold title and in the parentheses after it, and all names in the text that begin with `torch`.
    """

    names: frozenset[str]
    text: str


def items(page: str) -> Iterator[Difference]:
    """Yield the list items of `page`, the text that :func:`differences` returns."""
    for found in re.finditer(r"^\* (.+(?:\n {2}.+)*)", page, re.MULTILINE):
        text = " ".join(found[1].split())
        subject = re.match(r"\*\*.+?\*\*(?: \([^)]*\))?", text)
        spans = re.findall(r"`([^`]+)`", subject[0] if subject else "") + re.findall(
            r"`(torch\.[^`]+)`", text
        )
        names = {re.split(r"[(\[ =]", span)[0].removeprefix("torch.").strip(".") for span in spans}
        yield Difference(frozenset(name for name in names if re.fullmatch(r"[A-Za-z_][\w.]*", name)), text)


def differs(name: str, page: list[Difference]) -> str | None:
    """Return the text of the first item that states how `name` differs from PyTorch, or None if there is none.

    The name `torch.nn.Linear` is described by items with the name `nn.Linear` or `Linear`.
    """
    parts = name.split(".")[1:]
    endings = {".".join(parts[i:]) for i in range(len(parts))}
    return next((item.text for item in page if item.names & endings), None)


# The report -------------------------------------------------------------------------------------------------


def text_of(path: Path) -> str:
    """Return the text of a program, or of the code cells of a notebook without IPython's commands.

    Raises:
        ValueError: the file is not a valid notebook.
    """
    text = path.read_text()
    if path.suffix != ".ipynb":
        return text
    try:
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        return "\n".join(_python_of("".join(cell["source"])) for cell in cells)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a notebook: {error!r}") from None


def _python_of(cell: str) -> str:
    """Replace lines that are not Python by statements without effect, so that the other lines keep their numbers."""
    if cell.lstrip().startswith("%%"):  # a magic for the whole cell
        first, *rest = cell.lstrip().split("\n")
        measured = first.split()[0] in ("%%time", "%%timeit", "%%capture", "%%prun")
        return "\n".join(
            ["pass", *(_python_of("\n".join(rest)).split("\n") if measured else ["" for _ in rest])]
        )
    return re.sub(r"^([ \t]*)[%!?].*$|^([ \t]*)[\w.]+\?+[ \t]*$", r"\1\2pass", cell, flags=re.MULTILINE)


def programs(path: Path) -> Iterator[Path]:
    """Yield the programs in a file or folder."""
    if path.is_dir():
        yield from sorted(file for file in path.rglob("*") if file.suffix in (".py", ".ipynb"))
    else:
        yield path


def main(arguments: list[str]) -> int:
    """Print the report, and return the exit status: 1 if a name is missing, 2 if a file cannot be read."""
    if not arguments or arguments[0].startswith("-"):
        print("usage: python -m rushlight.as_torch report FILE-OR-FOLDER...", file=sys.stderr)
        return 2
    page = list(items(differences()))
    status = 0
    for path in (program for argument in arguments for program in programs(Path(argument))):
        try:
            found = uses(text_of(path))
        except (OSError, SyntaxError, ValueError) as error:
            print(f"{path}: cannot be read ({error})", file=sys.stderr)
            status = 2
            continue
        here = [(use, find(use.name)) for use in found]
        missing = [(use, one.missing) for use, one in here if one.missing]
        raising = [use for use, one in here if not one.missing and only_raises(one.value)]
        gone = {use.name for use, _ in missing} | {use.name for use in raising}
        different = [
            (use, text) for use in found if use.name not in gone and (text := differs(use.name, page))
        ]
        absent = len(missing) + len(raising)
        print(f"{path}: {len(found)} names of torch, {absent} missing, {len(different)} that differ")
        for use, part in missing:
            print(
                f"  line {use.line}: {use.name} is missing"
                + (f": there is no {part}" if part != use.name else "")
            )
        for use in raising:
            print(
                f"  line {use.line}: {use.name} is not supported: it can be imported, but a call raises an error"
            )
        for use, text in different:
            print(
                textwrap.fill(
                    f"line {use.line}: {use.name} differs: {text}",
                    118,
                    initial_indent="  ",
                    subsequent_indent="    ",
                )
            )
        status = max(status, int(absent > 0))
    return status
