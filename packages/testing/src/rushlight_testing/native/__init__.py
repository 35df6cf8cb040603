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
    """Compile one C++ file against core's headers.

    The compiler is $CXX, by default `c++`; $RUSHLIGHT_SANITIZE names sanitizers.

    Args:
        source: the file.
        target: the program or the library that is written.
        options: further options of the compiler.

    Raises:
        RuntimeError: the file does not compile; the text is the compiler's.

    Example::

        compile_cpp(Path("backend.cpp"), Path("backend.so"), ["-shared", "-fPIC"])
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
    """Compile a second implementation of a seam, and return the library's path.

    Args:
        name: "toy_device", "small_backend" or "guard_allocator".
        folder: where the library is written.
        options: further options of the compiler.

    Raises:
        RuntimeError: the source does not compile.

    Example::

        library = compile_plugin("toy_device", tmp_path)
        rushlight_core.devices.load_backend(library)
    """
    library = folder / f"{name}.so"
    compile_cpp(Path(__file__).parent / f"{name}.cpp", library, ["-shared", "-fPIC", *options])
    return library
