"""The C++ tests of threads under the thread sanitizer: part of `nox -s sanitize`, which sets RUSHLIGHT_SANITIZE=thread.

Each program of tests/cpp is built from the sources that its first lines name. Some of them belong to core, so the
repository is needed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
PACKAGES = TESTS.parents[1]
SANITIZE = os.environ.get("RUSHLIGHT_SANITIZE", "")

pytestmark = pytest.mark.skipif("thread" not in SANITIZE, reason="for the thread sanitizer: nox -s sanitize")


def empty_entries(objects: list[Path]) -> str:
    """Return C++ code with empty entries for the operators that the objects refer to and do not define."""
    listing = subprocess.run(
        ["nm", "--demangle", *map(str, objects)], check=True, capture_output=True, text=True
    ).stdout
    names = re.findall(r"([A-Z]) rushlight::(op_\w+)$", listing, flags=re.MULTILINE)
    missing = {name for kind, name in names if kind == "U"} - {name for kind, name in names if kind != "U"}
    empty = (
        'Operator {0}{{"{0}", "", 0, Form::Functional, false, nullptr, nullptr, nullptr, nullptr, {{}}}};\n'
    )
    entries = "".join(empty.format(name) for name in sorted(missing))
    return f'#include "rushlight/dispatch.h"\nnamespace rushlight {{\n{entries}}}\n'


@pytest.fixture(scope="module")
def objects_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which programs share compiled objects."""
    return tmp_path_factory.mktemp("objects")


@pytest.mark.parametrize("source", sorted(TESTS.glob("cpp/test_*.cpp")), ids=lambda path: path.stem)
def test_program(source: Path, objects_folder: Path, tmp_path: Path) -> None:
    named = " ".join(re.findall(r"^// sources: (.*)$", source.read_text(), flags=re.MULTILINE)).split()
    sources = [source, *(path for name in named for path in sorted(PACKAGES.glob(name)))]
    core = importlib.util.find_spec("rushlight_core")  # not imported: it may use another sanitizer
    assert core is not None
    assert core.origin is not None
    generated = Path(core.origin).parent / "include"  # contains ops/*.h and abi.h
    includes = [PACKAGES / "autograd/include", PACKAGES / "autograd/src", PACKAGES / "core/src"]
    includes += [PACKAGES / "core/include", PACKAGES / "core/tests/cpp", generated]
    options = f"-std=c++20 -O1 -g1 -march=x86-64-v3 -Wall -Wextra -Wno-unused-parameter -Wno-tsan -fsanitize={SANITIZE}"
    compiler = [
        *shlex.split(os.environ.get("CXX", "c++")),
        *options.split(),
        *(f"-I{path}" for path in includes),
    ]

    def build(path: Path, folder: Path = objects_folder) -> Path:
        target = folder / f"{path.parent.name}-{path.stem}.o"
        if not target.exists():  # another program may have compiled it
            built = subprocess.run(
                [*compiler, "-c", str(path), "-o", str(target)], capture_output=True, text=True
            )
            assert built.returncode == 0, built.stderr
        return target

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(build, sources))
    rest = tmp_path / "empty_entries.cpp"
    rest.write_text(empty_entries(objects))
    objects.append(build(rest, tmp_path))
    program = tmp_path / source.stem
    linked = subprocess.run(
        [*compiler, *map(str, objects), "-ldl", "-lpthread", "-o", str(program)],
        capture_output=True,
        text=True,
    )
    assert linked.returncode == 0, linked.stderr
    # Allocate blocks with malloc, which the sanitizer checks.
    environment = {**os.environ, "RUSHLIGHT_CPU_ALLOCATOR": "malloc", "TSAN_OPTIONS": "halt_on_error=1"}
    run = subprocess.run([program], capture_output=True, text=True, timeout=300, env=environment)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    assert "ok" in run.stdout
