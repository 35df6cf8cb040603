"""Programs in C and C++, which are built in the same way as a user builds them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from c_interface import folder, includes

import rushlight_core as core

HERE = Path(__file__).parent


def built(source: str, tmp_path: Path, compiler: str, *options: str) -> Path:
    program = tmp_path / "program"
    command = [
        *shlex.split(os.environ.get(compiler.upper(), compiler)),
        *options,
        str(HERE / source),
        "-o",
        str(program),
    ]
    command += [f"-I{path}" for path in includes()]
    command += [
        f"-L{folder()}",
        "-lrushlight",
        f"-Wl,-rpath,{folder()}",
        "-Wl,--allow-shlib-undefined",
        "-pthread",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def test_a_program_of_c(tmp_path: Path) -> None:
    program = built("program.c", tmp_path, "cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror")
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_calls_while_threads_and_the_process_end(tmp_path: Path) -> None:
    """Destructors of threads and functions of atexit run when thread_local variables have been destroyed."""
    program = built("ends.c", tmp_path, "cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror")
    environment = {**os.environ, "MALLOC_PERTURB_": "85"}  # what is freed does not keep its content
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_threads_that_unload_the_library(tmp_path: Path) -> None:
    program = built("unloaded.c", tmp_path, "cc", "-std=gnu11", "-Wl,--as-needed", "-ldl")
    command = [program, str(folder() / "librushlight.so")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_the_header_is_plain_c(tmp_path: Path) -> None:
    (tmp_path / "unit.c").write_text('#include "rushlight/rushlight.h"\nint main(void) { return 0; }\n')
    for language in ("c", "c++"):
        command = [
            "cc",
            "-x",
            language,
            "-std=c11" if language == "c" else "-std=c++20",
            "-pedantic",
            "-Wall",
            "-Werror",
        ]
        command += ["-fsyntax-only", *(f"-I{path}" for path in includes()), str(tmp_path / "unit.c")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_a_program_of_cpp(tmp_path: Path) -> None:
    program = built("program.cpp", tmp_path, "c++", "-std=c++20", "-O0", "-Wall", "-Werror")
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    core.manual_seed(1)
    a, b = core.randn(2, 3), core.ones(3)
    c = ((2 * a + b) / (b - 0.5) - a * -b + b) * 2
    wanted = [a, c, core.cat([a, a], 1), 2, core.zeros(0, 4), core.arange(2000), core.full((2, 2), 1e9)]
    wanted += [core.arange(4) * 0.5, core.full((), 1 - 2j), a > 0, core.arange(30, dtype=core.int16)]
    wanted += [core.arange(3) / 0, core.arange(2400).reshape(40, 2, 30), core.zeros(2, dtype=core.float16)]
    text = "\n".join(map(repr, wanted)) + f"\n{a!r}".replace("]])", "]], requires_grad=True)")
    assert done.stdout.startswith(text + "\ntensor(undefined)\nadd(input, other): shapes (2,) and (3,)"), (
        done.stdout
    )


def test_two_copies_of_the_library_are_refused(tmp_path: Path) -> None:
    """Calls of the second copy fail, and the first copy continues to work."""
    copy = tmp_path / "another_name.so"
    copy.write_bytes((folder() / "librushlight.so").read_bytes())
    program = f"""
import ctypes
from ctypes import byref, c_void_p
first, second = ctypes.CDLL({str(folder() / "librushlight.so")!r}), ctypes.CDLL({str(copy)!r})
second.rl_error_text.restype = ctypes.c_char_p
first_made, second_made = c_void_p(85), c_void_p(85)
assert first.rl_generator_new(ctypes.c_uint64(1), byref(first_made)) == 1
assert second.rl_generator_new(ctypes.c_uint64(1), byref(second_made)) == 1
assert not first_made.value and not second_made.value
results = (ctypes.c_uint64 * 8)(*[85] * 8)
assert second.rl_call(b"eye", None, 0, results, 2) == 1
assert not any(results)
made = c_void_p(85)
assert second.rl_op_relu(None, byref(made)) == 1
assert not made.value
print(second.rl_error_text().decode())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "this process has loaded two copies of librushlight: " in done.stdout
    assert "another_name.so" in done.stdout


def test_the_copy_in_use_goes_on(tmp_path: Path) -> None:
    copy = tmp_path / "librushlight.so"
    copy.write_bytes((folder() / "librushlight.so").read_bytes())
    program = f"""
from ctypes import CDLL, byref, c_uint64, c_void_p
made, other, last = c_void_p(), c_void_p(), c_void_p()
first = CDLL({str(folder() / "librushlight.so")!r})
assert first.rl_generator_new(c_uint64(1), byref(made)) == 0
assert CDLL({str(copy)!r}).rl_generator_new(c_uint64(1), byref(other)) == 1
assert first.rl_generator_new(c_uint64(1), byref(last)) == 0
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
