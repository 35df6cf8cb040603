"""Second implementations of core's seams in C++, as sources that a test compiles against core's installed headers."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import rushlight_core

__all__ = ["compile_cpp", "compile_plugin"]


def compile_cpp(source: Path, target: Path, options: Sequence[str] = ()) -> None:
    """Compiles one file, with $CXX or `c++`, and the sanitizers that $RUSHLIGHT_SANITIZE names.

    Raises:
        RuntimeError: with the compiler's words, where it fails.
    """
    # Of an editable package the headers lie beside what was built, not beside the Python files.
    folders = [Path(folder) / "include" for folder in rushlight_core.__path__]
    include = next(folder for folder in folders if folder.is_dir())
    command = [*shlex.split(os.environ.get("CXX", "c++")), "-std=c++20", "-O1", "-Wall", "-Wextra", *options]
    if sanitize := os.environ.get("RUSHLIGHT_SANITIZE", ""):
        command += ["-g", f"-fsanitize={sanitize}", "-fno-sanitize-recover=all"]
    command += [f"-I{include}", str(source), "-ldl", "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{source.name} does not compile:\n{done.stderr}")


def compile_plugin(name: str, folder: Path, options: Sequence[str] = ()) -> Path:
    """Return the library of a source of this folder: "toy_device", "small_backend", "guard_allocator"."""
    library = folder / f"{name}.so"
    compile_cpp(Path(__file__).parent / f"{name}.cpp", library, ["-shared", "-fPIC", *options])
    return library
