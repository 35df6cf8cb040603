"""The C++ tests: one program for each file of tests/cpp, built from the sources that its first lines name.

RUSHLIGHT_SANITIZE=address,undefined (or thread) builds the tests and the tested files with a sanitizer.
RUSHLIGHT_FUZZ_OPERATIONS is the number of operations of the randomised tests of allocators.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parent.parent
SOURCES = sorted((CORE / "tests" / "cpp").glob("test_*.cpp"))
SANITIZE = os.environ.get("RUSHLIGHT_SANITIZE", "")


def head(source: Path) -> tuple[list[Path], str]:
    """Return the files of core with which a test is linked, and the options with which all its files are compiled."""
    found = dict[str, list[str]](sources=[], options=[])
    for key, values in re.findall(r"^// (sources|options): (.*)$", source.read_text(), flags=re.MULTILINE):
        found[key] += values.split()
    options = "-std=c++20 -O1 -march=x86-64-v3 -Wall -Wextra -fopenmp"
    if SANITIZE:
        options += f" -g -fsanitize={SANITIZE} -fno-sanitize-recover=all"
    return [CORE / name for name in found["sources"]], " ".join([options, *found["options"]])


def compiler(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*shlex.split(os.environ.get("CXX", "c++")), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


class Objects:
    """Object files in a folder. Tests share files with the same options. Two compilers run at a time."""

    def __init__(self, folder: Path, pool: ThreadPoolExecutor) -> None:
        self.folder, self.pool = folder, pool
        self.compiled: dict[tuple[Path, str], tuple[Path, Future[subprocess.CompletedProcess[str]]]] = {}

    def request(self, source: Path, options: str) -> tuple[Path, Future[subprocess.CompletedProcess[str]]]:
        if (source, options) not in self.compiled:
            path = self.folder / f"{len(self.compiled)}-{source.stem}.o"
            includes = [f"-I{CORE / folder}" for folder in ("include", "src", "tests/cpp")]
            command = [*options.split(), *includes, "-c", str(source), "-o", str(path)]
            self.compiled[source, options] = path, self.pool.submit(compiler, *command)
        return self.compiled[source, options]


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest):
    """Compile the object files of all tests that will run, and return them."""
    tests = [item for item in request.session.items if "objects" in item.fixturenames]
    with ThreadPoolExecutor(2) as pool:
        objects = Objects(tmp_path_factory.mktemp("cpp"), pool)
        for test in sorted(test.callspec.params["source"] for test in tests):
            sources, options = head(test)
            for source in (test, *sources):
                objects.request(source, options)
        yield objects


def environments(source: Path) -> list[dict[str, str]]:
    """Return the environments of a test. The allocator's tests run with cached blocks and with malloc."""
    if source.stem != "test_cpu_allocator":
        return [{}]
    return [{"RUSHLIGHT_CPU_ALLOCATOR": choice} for choice in ("caching", "malloc")]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem.removeprefix("test_"))
def test_program(source: Path, objects: Objects, tmp_path: Path) -> None:
    sources, options = head(source)
    files = []
    for path, compiled in [objects.request(one, options) for one in (source, *sources)]:
        result = compiled.result()
        assert result.returncode == 0, result.stderr
        files.append(str(path))
    program = tmp_path / source.stem
    linked = compiler(*options.split(), *files, "-ldl", "-o", str(program))
    assert linked.returncode == 0, linked.stderr
    for environment in environments(source):
        run = subprocess.run(
            [program], capture_output=True, text=True, timeout=600, env={**os.environ, **environment}
        )
        assert run.returncode == 0, f"{environment}\n{run.stdout}\n{run.stderr}"
        assert "ok" in run.stdout
