"""The development environment: an editable tree in .venv whose C++ is rebuilt by a plain `cmake --build`.

Editable installs put the Python files in place. The native parts are then installed once as symbolic links
into the build folder, so that a later build is enough: nothing is copied, and headers keep the times that the
compiler's dependency files compare.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from nox_support.graph import Graph, Package, dependency_group
from nox_support.wheels import (
    WORK,
    BuildError,
    ccache_settings,
    check_toolchain,
    requirements_of_build,
    toolchain,
    tree_hash,
)

BUILD = WORK / "build" / "dev"


def refresh(graph: Graph, home: Path) -> None:
    """Bring the environment and the native libraries up to date."""
    check_toolchain()
    python = home / "bin" / "python"
    version = home / "python-version.txt"
    if not version.exists() or version.read_text() != sys.version:
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        version.write_text(sys.version)
    environment = _environment(home)
    _install_tools(graph, home, environment)
    for package in graph.packages.values():
        stamp = BUILD / f"{package.short}.installed"
        wanted = _key(package, home)
        if not stamp.exists() or stamp.read_text() != wanted:
            print(f"installing {package.name}, editable", flush=True)
            stamp.unlink(missing_ok=True)
            _install_editable(package, python, environment)
            stamp.write_text(wanted)
        elif package.native:
            _run(["cmake", "--build", str(BUILD / package.short)], environment)
        if package.native:
            _link(package, home, environment)
    print(f"\n. {home.name}/bin/activate      then: pytest packages/core/tests")
    print(
        f"after editing C++:        nox -s dev, or cmake --build {(BUILD / 'core').relative_to(graph.root)}"
    )


def _install_editable(package: Package, python: Path, environment: dict[str, str]) -> None:
    command = [str(python), "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps"]
    command += ["--editable", str(package.folder)]
    if package.native:
        command += ["--config-settings", f"build-dir={BUILD / package.short}"]
    _run(command, environment)


def _link(package: Package, home: Path, environment: dict[str, str]) -> None:
    """Replace the copies that the editable install made by links, and add links to new files."""
    (site,) = home.glob("lib/python*/site-packages")
    for path in (site / package.module).rglob("*"):
        if path.is_symlink() and not path.exists():  # to a renamed or removed file
            path.unlink()
    command = ["cmake", "--install", str(BUILD / package.short)]
    command += ["--prefix", str(site / package.module)]
    _run(command, environment | {"CMAKE_INSTALL_MODE": "ABS_SYMLINK_OR_COPY"}, quiet=True)


def _install_tools(graph: Graph, home: Path, environment: dict[str, str]) -> None:
    ours = graph.packages.values()
    # With build isolation, hatchling would request `editables` itself.
    wanted = {"editables"}
    for package in ours:
        wanted.update(requirements_of_build(graph, package))
        wanted.update(
            text for text in [*package.dependencies, *package.extra("test")] if not graph.ours([text])
        )
    for group in ("lint", "types", "arrows", "docs"):
        wanted.update(dependency_group(group))
    stamp = home / "installed.txt"
    text = "\n".join(sorted(wanted))
    if not stamp.exists() or stamp.read_text() != text:
        _run([str(home / "bin" / "python"), "-m", "pip", "install", "-q", *sorted(wanted)], environment)
        stamp.write_text(text)


def _key(package: Package, home: Path) -> str:
    """Return a text whose change requires a new editable install: it covers a package's configuration, not its sources."""
    parts = [str(home), tree_hash(package.folder / "pyproject.toml")]
    if package.native:
        parts += [toolchain(), *_python_files(package)]
    if (package.folder / "hatch_build.py").exists():
        parts.append(tree_hash(package.folder / "src"))  # these files are generated from the sources
    return "\n".join(parts)


def _python_files(package: Package) -> list[str]:
    """Return the Python files of a package, which the editable import hook lists: a new file needs a new install."""
    return sorted(str(path.relative_to(package.folder)) for path in (package.folder / "python").rglob("*.py"))


def _environment(home: Path) -> dict[str, str]:
    BUILD.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ, RUSHLIGHT_ARCH="native", RUSHLIGHT_SANITIZE="", VIRTUAL_ENV=str(home))
    environment["PATH"] = os.pathsep.join([str(home / "bin"), os.environ.get("PATH", "")])
    environment["CMAKE_GENERATOR"] = "Ninja"
    environment["CMAKE_BUILD_PARALLEL_LEVEL"] = str(len(os.sched_getaffinity(0)))
    return environment | ccache_settings()


def _run(command: list[str], environment: dict[str, str], quiet: bool = False) -> None:
    # The first word is looked up in the environment's own PATH, not in this process's.
    program = shutil.which(command[0], path=environment["PATH"]) or command[0]
    output = subprocess.DEVNULL if quiet else None
    if subprocess.run([program, *command[1:]], env=environment, stdout=output).returncode:
        raise BuildError(f"failed: {' '.join(command)}")
