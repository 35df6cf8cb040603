"""Check what the built libraries export, need and contain: `python tools/check_symbols.py <build folder>...`

* librushlight*.so has no undefined symbol of Python: a C++ program embeds it without an interpreter;
* only the CUDA plug-in needs a CUDA library;
* a library exports only names of rushlight, so that the loader does not mix its copies of templates with another library's;
* only core needs an OpenMP runtime, since a tool that repairs wheels adds a private copy to each library that needs one;
* AVX-512 instructions occur only in functions that are called after the CPU was checked (see
  Note [Weak symbols of kernels] in packages/core/cmake/CpuKernels.cmake);
* the module that checks the CPU (Note [The check of the processor]) uses only instructions that every x86-64 CPU has.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PYTHON = re.compile(r"^_?Py[A-Z_]")
# Mangled names of namespace rushlight, their type information and thread-local wrappers; the C functions.
OURS = re.compile(
    r"^(rushlight_\w+|rl_\w+|_ZN[KRO]*9rushlight\w+|_ZT[ISVHW]N9rushlight\w+|_ZGVN9rushlight\w+)$"
)
# Symbols that the linker and the sanitizers' runtimes add to every library.
ADDED = re.compile(r"^(_init|_fini|_edata|_end|__bss_start|__odr_asan\w*)$")
CUDA = re.compile(r"^lib(cuda|cudart|cublas|cublasLt|cudnn\w*|nvrtc|cupti|nccl)\.so")
WIDE = re.compile(r"%zmm\d|%[xy]mm(1[6-9]|2\d|3[01])\b|%k[0-7]\b")
# Instructions of AVX, whose names begin with v, and of BMI.
NEWER = re.compile(r"\t(v[a-z0-9]+|andn|bextr|bls[ir]|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|movbe)\s")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")


def output(*command: str) -> list[str]:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def dynamic_symbols(library: Path, kind: str) -> list[str]:
    return [
        line.split()[-1].partition("@")[0]
        for line in output("nm", "-D", f"--{kind}-only", str(library))
        if line
    ]


def needed(library: Path) -> list[str]:
    return [
        line.split("[")[1].rstrip("]") for line in output("readelf", "-d", str(library)) if "(NEEDED)" in line
    ]


def wide_functions(library: Path) -> set[str]:
    """Return the functions that use AVX-512 registers outside of the namespace that is chosen at run time."""
    found = set()
    function = ""
    command = ["objdump", "-d", "-C", "--no-show-raw-insn", str(library)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if match := FUNCTION.match(line):
                function = match.group(1)
            elif "avx512" not in function and WIDE.search(line):
                found.add(function)
    return found


def newer_instructions(library: Path) -> set[str]:
    """Return the names of instructions that the first x86-64 CPUs do not have."""
    lines = output("objdump", "-d", "--no-show-raw-insn", str(library))
    return {match.group(1) for line in lines if (match := NEWER.search(line))}


def is_native_build(folder: Path) -> bool:
    """Return whether the build is for this machine only, in which case the kernels may contain any instruction."""
    cache = folder / "CMakeCache.txt"
    return cache.exists() and "RUSHLIGHT_ARCH:STRING=native" in cache.read_text()


def problems(library: Path, native: bool) -> Iterator[str]:
    name = library.name
    extension = name.startswith(("_C.", "_bootstrap."))
    cuda_plugin = name == "librushlight_cuda.so"
    if not extension:
        for symbol in dynamic_symbols(library, "undefined"):
            if PYTHON.match(symbol):
                yield f"needs {symbol} of Python: only src/python may include Python.h"
        for symbol in dynamic_symbols(library, "defined"):
            if not OURS.match(symbol) and not ADDED.match(symbol):
                yield f"exports {symbol}, which is not a name of rushlight"
    for other in needed(library):
        if CUDA.match(other) and not cuda_plugin:
            yield f"needs {other}: only the CUDA plug-in may"
        if other.startswith(("libgomp", "libomp", "libiomp")) and name != "librushlight.so":
            yield f"needs {other}: only librushlight.so may"
        if other.startswith("libdnnl"):
            yield f"needs {other}: oneDNN must be opened on first use, under the name of our own copy"
    if name.startswith("_bootstrap.") and (found := newer_instructions(library)):
        yield f"uses {', '.join(sorted(found))}, before it is known that the CPU has them"
    if not native:
        for function in sorted(wide_functions(library)):
            yield f"uses AVX-512 registers in {function}, which older CPUs reach"


def main(folders: list[str]) -> int:
    # The vendor's library is not checked.
    pairs = [
        (path, is_native_build(Path(folder)))
        for folder in folders
        for path in sorted(Path(folder).rglob("*.so"))
        if path.name != "librushlight_dnnl.so" and "CMakeFiles" not in path.parts
    ]
    if not pairs:
        print(f"no library was found in: {', '.join(folders) or 'no folder given'}")
        return 1
    failed = False
    for library, native in pairs:
        found = list(problems(library, native))
        failed = failed or bool(found)
        print(f"{'FAILED' if found else 'ok':<6} {library.parent.name}/{library.name}")
        for text in found:
            print(f"       {text}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
