"""The C++ tests: one program for each file of tests/cpp, built from the sources that its head names.

RUSHLIGHT_SANITIZE=address,undefined (or thread) builds them, and what they test, under a sanitizer.
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


def build(source: Path, folder: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Compiles a test with the sources and options of its first lines."""
    program = folder / source.stem
    head = dict[str, list[str]](sources=[], options=[])
    for key, values in re.findall(r"^// (sources|options): (.*)$", source.read_text(), flags=re.MULTILINE):
        head[key] += values.split()
    sources = [str(CORE / name) for name in head["sources"]]
    includes = [f"-I{CORE / folder}" for folder in ("include", "src", "tests/cpp")]
    options = "-std=c++20 -O1 -march=x86-64-v3 -Wall -Wextra -fopenmp"
    if SANITIZE:
        options += f" -g -fsanitize={SANITIZE} -fno-sanitize-recover=all"
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    command = [*compiler, *options.split(), *head["options"], *includes]
    command += [str(source), *sources, "-ldl", "-o", str(program)]
    return program, subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest):
    """All wanted programs, two compilers at a time."""
    folder = tmp_path_factory.mktemp("cpp")
    tests = [item for item in request.session.items if "programs" in item.fixturenames]
    wanted = {test.callspec.params["source"] for test in tests}
    with ThreadPoolExecutor(2) as pool:
        yield {source: pool.submit(build, source, folder) for source in sorted(wanted)}


def environments(source: Path) -> list[dict[str, str]]:
    """The allocator's tests run with cached blocks and with malloc's, whatever the build's default."""
    if source.stem != "test_cpu_allocator":
        return [{}]
    return [{"RUSHLIGHT_CPU_ALLOCATOR": choice} for choice in ("caching", "malloc")]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem.removeprefix("test_"))
def test_program(source: Path, programs: dict[Path, Future[tuple[Path, subprocess.CompletedProcess[str]]]]):
    program, built = programs[source].result()
    assert built.returncode == 0, built.stderr
    for environment in environments(source):
        run = subprocess.run(
            [program], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
        )
        assert run.returncode == 0, f"{environment}\n{run.stdout}\n{run.stderr}"
        assert "ok" in run.stdout
