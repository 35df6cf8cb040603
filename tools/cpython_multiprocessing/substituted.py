"""CPython's tests, in which `multiprocessing` is `rushlight_multiprocessing`.

The tests are compiled from their source after each import of `multiprocessing` was rewritten. Submodules are those of
`rushlight_multiprocessing` if it has them under the same name, and otherwise the standard ones. Processes that are started
by spawn or forkserver import this module by its name, and read where the tests are from the environment.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path

from cpython_multiprocessing import sources

STANDARD, OURS = "multiprocessing", "rushlight_multiprocessing"


class _Substitution(ast.NodeTransformer):
    """Rewrites `import multiprocessing` and `from multiprocessing import …`.

    `import multiprocessing.pool` binds the name `multiprocessing`: it becomes an import of the submodule that binds no name,
    and an import of our package under that name. `from multiprocessing.pool import …` does not change."""

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        kept: list[ast.stmt] = []
        for alias in node.names:
            top = alias.name.split(".")[0]
            if top != STANDARD:
                kept.append(ast.Import(names=[alias]))
                continue
            if alias.name != STANDARD:
                kept.append(ast.Import(names=[alias]))
            if alias.asname is None or alias.name == STANDARD:
                kept.append(ast.Import(names=[ast.alias(name=OURS, asname=alias.asname or STANDARD)]))
        return [ast.copy_location(statement, node) for statement in kept]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        if node.module == STANDARD:
            node.module = OURS
        return node


def _execute() -> None:
    file = sources.find(Path(os.environ["RUSHLIGHT_CPYTHON_TESTS"]))
    globals()["__file__"] = str(file)  # tests run files that are beside it
    tree = _Substitution().visit(ast.parse(file.read_text(encoding="utf-8"), str(file)))
    exec(compile(ast.fix_missing_locations(tree), str(file), "exec"), globals())
    globals()["PRELOAD"] = ["__main__", "cpython_multiprocessing.made"]  # for the server of forkserver


_execute()
