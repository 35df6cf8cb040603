"""C++ implementations of core's interfaces, which tests compile against core's installed headers."""

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

    The environment variable CXX selects the compiler, by default `c++`, and RUSHLIGHT_SANITIZE selects sanitizers.

    Args:
        source: the source file.
        target: the program or the library to write.
        options: additional options for the compiler.

    Raises:
        RuntimeError: the file does not compile. The message contains the output of the compiler.

    Example::

        compile_cpp(Path("backend.cpp"), Path("backend.so"), ["-shared", "-fPIC"])
    """
    # If the package is an editable install, the headers are in the build folder, not beside the Python files.
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
    """Compile an alternative implementation of a core interface, and return the path of the library.

    Args:
        name: "toy_device", "small_backend" or "guard_allocator".
        folder: the folder to write the library to.
        options: additional options for the compiler.

    Raises:
        RuntimeError: the source does not compile.

    Example::

        library = compile_plugin("toy_device", tmp_path)
        rushlight_core.devices.load_backend(library)
    """
    library = folder / f"{name}.so"
    compile_cpp(Path(__file__).parent / f"{name}.cpp", library, ["-shared", "-fPIC", *options])
    return library
