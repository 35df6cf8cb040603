"""The packages that errors tell users to install exist: in this repository, or in a package's declared extras."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted((ROOT / "packages").glob("*/pyproject.toml"))
SOURCES = sorted(
    path
    for folder in (ROOT / "packages").iterdir()
    for part in ("src", "python", "codegen")
    for path in (folder / part).rglob("*")
    if path.suffix in {".py", ".cpp", ".h"}
)
COMMAND = re.compile(
    r"install ((?:-[\w-]+ )*)(rushlight-[\w-]+)|pip install ((?:-[\w-]+ )*)([A-Za-z][\w.-]*)"
)


def names_in(text: str) -> set[str]:
    return {match[2] or match[4].rstrip(".") for match in COMMAND.finditer(text)}


def known() -> set[str]:
    found = set()
    for path in PACKAGES:
        project = tomllib.loads(path.read_text())["project"]
        wanted = [*project.get("dependencies", [])]
        for extra in project.get("optional-dependencies", {}).values():
            wanted += extra
        found |= {project["name"], *(re.split(r"[^\w.-]", requirement)[0] for requirement in wanted)}
    return found


def test_names_are_read_from_hints() -> None:
    assert names_in("hint: pip install rushlight-autograd, then") == {"rushlight-autograd"}
    assert names_in("-m pip install --force-reinstall rushlight-core\n") == {"rushlight-core"}
    assert names_in("hint: install rushlight-none on it") == {"rushlight-none"}
    assert names_in("hint: install the package again") == set()


def test_what_hints_name_exists() -> None:
    unknown = {str(path.relative_to(ROOT)): names_in(path.read_text()) - known() for path in SOURCES}
    assert {path: names for path, names in unknown.items() if names} == {}
