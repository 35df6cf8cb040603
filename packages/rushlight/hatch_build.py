"""When a wheel is built, write stub files for the modules in `rushlight._table`, which have no source files."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Stubs(BuildHookInterface[Any]):
    """The build hook that pyproject.toml refers to."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        package = Path(self.root, "src", "rushlight")
        table = runpy.run_path(str(package / "_table.py"))
        stubs = {package.joinpath(*name.split(".")).with_suffix(".pyi"): name for name in table["MODULES"]}
        for old in set(package.rglob("*.pyi")) - set(stubs):
            old.unlink()
        for path, name in stubs.items():
            path.write_text(table["stub"](name), encoding="utf-8")
