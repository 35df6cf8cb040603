"""Find the program that the command line names, and set the attributes of the `__main__` in which it runs."""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any

#: The environment variable that passes the program to spawned processes: `path:FILE` or `module:NAME`.
VARIABLE = "RUSHLIGHT_AS_TORCH"


class _Spec(ModuleSpec):
    """A module spec of `_program` in which the parent is the program's package, so that relative imports work."""

    package = ""

    @property
    def parent(self) -> str:
        return self.package


def code_of_program(namespace: dict[str, Any]) -> CodeType:
    """Return the code to run in `namespace`, and set `__file__`, `__package__`, `__doc__` and `__spec__` in `namespace`.

    Raises:
        ModuleNotFoundError: the module to run does not exist.
    """
    kind, _, what = os.environ[VARIABLE].partition(":")
    if kind == "path":
        source, package = what, ""
        code: CodeType | None = compile(Path(source).read_bytes(), source, "exec")
    else:
        source, package, code = _module(what)
    assert code is not None
    spec = _Spec("rushlight.as_torch._program", None, origin=source)
    spec.package = package
    namespace.update(
        __file__=source, __package__=package or None, __spec__=spec, __doc__=None, __cached__=None
    )
    namespace.pop("_import_module", None)
    sys.argv[0] = source
    return code


def _module(name: str) -> tuple[str, str, CodeType | None]:
    """Return the file, package and code of a module, or of a package's `__main__`."""
    spec = find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = find_spec(f"{name}.__main__")
    if spec is None or spec.loader is None or not hasattr(spec.loader, "get_code"):
        raise ModuleNotFoundError(f"no module named {name!r} can be run", name=name)
    return spec.origin or name, spec.parent or "", spec.loader.get_code(spec.name)
