"""The packages of this repository and their dependencies, from their pyproject files."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def requirement_name(requirement: str) -> str:
    """Return the normalised name of a requirement such as `Rushlight_core[test]==0.1.*`."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement.strip())
    if match is None:
        raise ValueError(f"not a requirement: {requirement!r}")
    return re.sub(r"[-_.]+", "-", match.group()).lower()


@dataclass(frozen=True)
class Package:
    """One folder of packages/."""

    folder: Path

    @cached_property
    def pyproject(self) -> dict:
        return tomllib.loads((self.folder / "pyproject.toml").read_text())

    @property
    def short(self) -> str:
        """The folder's name, as in `nox -s "tests(core)"`."""
        return self.folder.name

    @property
    def name(self) -> str:
        return self.pyproject["project"]["name"]

    @property
    def module(self) -> str:
        """The Python package that it installs."""
        return self.name.replace("-", "_")

    @property
    def build_requires(self) -> list[str]:
        return self.pyproject["build-system"]["requires"]

    @property
    def dependencies(self) -> list[str]:
        return self.pyproject["project"].get("dependencies", [])

    @property
    def native(self) -> bool:
        return self.pyproject["build-system"]["build-backend"].startswith("scikit_build_core")

    @property
    def apart(self) -> bool:
        """Whether sessions that handle all packages leave it out, since its build needs more than a C++ compiler."""
        return self.pyproject.get("tool", {}).get("rushlight", {}).get("apart", False)

    def extra(self, name: str) -> list[str]:
        return self.pyproject["project"].get("optional-dependencies", {}).get(name, [])


# What CUDA's compiler compiles, and what generates it.
CUDA_SOURCES = (
    "packages/core/src/cuda/",
    "packages/core/src/ops/",
    "packages/core/include/",
    "packages/core/codegen/",
    "packages/core/ops/",
    "packages/cuda/",
    "tools/cuda_functors.py",
    "pyproject.toml",
)


class Graph:
    """All packages, keyed by their folder's name, in an order in which each package follows its dependencies.

    Packages that build separately are in `apart`.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        found = [Package(path.parent) for path in sorted(root.glob("packages/*/pyproject.toml"))]
        self.apart = {package.short: package for package in found if package.apart}
        found = [package for package in found if not package.apart]
        self._by_name = {package.name: package for package in found}
        self.packages: dict[str, Package] = {}
        for package in found:
            self._add(package, [])

    def _add(self, package: Package, path: list[str]) -> None:
        if package.short in self.packages:
            return
        if package.short in path:
            raise ValueError(
                f"packages depend on each other in a circle: {' -> '.join([*path, package.short])}"
            )
        for other in self.needs(package):
            self._add(other, [*path, package.short])
        self.packages[package.short] = package

    def __getitem__(self, short: str) -> Package:
        return self.packages[short]

    def ours(self, requirements: Iterable[str]) -> list[Package]:
        """Return the requirements that are packages of this repository."""
        names = [requirement_name(text) for text in requirements]
        return [self._by_name[name] for name in names if name in self._by_name]

    def needs(self, package: Package) -> list[Package]:
        """Return the packages that must be built first: the direct dependencies for running and building."""
        return list(dict.fromkeys(self.ours([*package.build_requires, *package.dependencies])))

    def links(self, package: Package) -> list[Package]:
        """Return the packages whose headers and libraries it is compiled against."""
        return self.ours(package.build_requires)

    def closure(self, packages: Iterable[Package], extra: str | None = None) -> list[Package]:
        """Return the packages and their run-time dependencies in build order; with `extra`, also those of the extra."""
        wanted: set[str] = set()
        waiting = list(packages)
        if extra is not None:
            waiting += self.ours(requirement for package in waiting for requirement in package.extra(extra))
        while waiting:
            package = waiting.pop()
            if package.short not in wanted:
                wanted.add(package.short)
                waiting += self.ours(package.dependencies)
        return [package for short, package in self.packages.items() if short in wanted]

    def files_changed_since(self, commit: str) -> list[str]:
        """Return the files that differ from `commit`, and files that are not committed."""
        diff = ["git", "-C", str(self.root), "diff", "--name-only", "--no-renames", commit]
        new = ["git", "-C", str(self.root), "ls-files", "--others", "--exclude-standard"]
        return [
            line
            for command in (diff, new)
            for line in subprocess.run(
                command, check=True, capture_output=True, text=True
            ).stdout.splitlines()
        ]

    def kernels_changed_since(self, commit: str) -> bool:
        """Return whether the sources from which CUDA's kernels are compiled differ from those of `commit`."""
        return any(file.startswith(CUDA_SOURCES) for file in self.files_changed_since(commit))

    def changed_since(self, commit: str) -> set[str]:
        """Return the packages changed since `commit`, and all packages whose tests the changes could affect.

        A change outside packages/, docs/ and benchmarks/ may concern all of them.
        """
        changed: set[str] = set()
        for file in self.files_changed_since(commit):
            top, _, rest = file.partition("/")
            if top == "packages":
                changed.add(rest.partition("/")[0])
            elif top not in ("docs", "benchmarks") and not file.endswith(".md"):
                return set(self.packages)
        return {
            package.short
            for package in self.packages.values()
            if changed & {other.short for other in [*self.closure([package], "test"), *self.links(package)]}
        }


def dependency_groups(root: Path = ROOT) -> dict[str, list[str]]:
    """Return `[dependency-groups]` of the root pyproject: the requirements of sessions in addition to our packages."""
    groups: dict[str, list[str]] = tomllib.loads((root / "pyproject.toml").read_text())["dependency-groups"]
    return groups


def dependency_group(name: str, root: Path = ROOT) -> list[str]:
    """Return the dependency group `name` of the root pyproject."""
    return dependency_groups(root)[name]
