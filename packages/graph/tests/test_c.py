"""The functions for C: calls from a C program, and the errors of each function."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterator
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p, sizeof
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
from rushlight_graph import _run, export, load, save

HERE = Path(__file__).parent
INSTALLED = _run.program().parents[1]
Releaser = ctypes.CFUNCTYPE(None, c_void_p)


class Array(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("dtype", c_int32),
        ("ndim", c_int32),
        ("sizes", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("data", c_void_p),
        ("release", Releaser),
        ("context", c_void_p),
        ("flags", c_uint64),
    ]


def core_libraries() -> Path:
    folders = map(Path, _run.environment()["LD_LIBRARY_PATH"].split(":"))
    return next(folder for folder in folders if (folder / "librushlight.so").exists())


@pytest.fixture(scope="module")
def library() -> Any:
    found = ctypes.CDLL(str(INSTALLED / "lib" / "librushlight_graph.so"))
    found.rl_error_text.restype = c_char_p  # defined in librushlight.so, which the library links
    found.rl_c_version.restype = c_uint32
    for function in ("rl_program_free", "rl_array_free", "rl_tensor_free"):
        getattr(found, function).restype = None
    return found


@pytest.fixture
def model(counting: Any, tmp_path: Path) -> Path:
    path = tmp_path / "model.rl"
    save(export(counting, (core.ones(2, 3),)), path)
    return path


@pytest.fixture
def program(library: Any, model: Path) -> Iterator[c_void_p]:
    handle = c_void_p()
    assert library.rl_program_load(str(model).encode(), byref(handle)) == 0
    yield handle
    library.rl_program_free(handle)


def array(tensor: Any, **changes: Any) -> Array:
    sizes = (c_int64 * tensor.ndim)(*tensor.shape)
    made = Array(sizeof(Array), 8, tensor.ndim, sizes, None, tensor.data_ptr(), Releaser(), None)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def results(count: int = 2) -> Any:
    made = (Array * count)()
    for one in made:
        one.struct_size = sizeof(Array)
    return made


def test_a_program_of_c(counting: Any, model: Path, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    built = tmp_path / "program"
    command = [compiler, "-std=c11", "-Wall", "-Werror", str(HERE / "program.c"), "-o", str(built)]
    command += [
        f"-I{INSTALLED / 'include'}",
        f"-L{INSTALLED / 'lib'}",
        "-lrushlight_graph",
        f"-L{core_libraries()}",
        "-lrushlight",
        "-Wl,--allow-shlib-undefined",
    ]
    command += [
        f"-I{HERE.parent / 'include'}",
        f"-I{core_libraries().parent / 'include'}",
        f"-Wl,-rpath,{INSTALLED / 'lib'}",
        f"-Wl,-rpath,{core_libraries()}",
    ]
    subprocess.run(command, check=True)
    done = subprocess.run([str(built), str(model)], capture_output=True, text=True, env=_run.environment())
    assert done.returncode == 0, done.stderr
    name, *numbers, released = done.stdout.split()
    wanted = counting(core.arange(6.0).reshape(2, 3))["y"].flatten().tolist()
    assert (name, [float.fromhex(n) for n in numbers], released) == ("x", wanted, "1")


def test_a_program_of_cpp(counting: Any, model: Path, tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    built = tmp_path / "program"
    command = [compiler, "-std=c++20", "-O0", "-Wall", "-Werror", str(HERE / "program.cpp"), "-o", str(built)]
    headers = (INSTALLED / "include", HERE.parent / "include", core_libraries().parent / "include")
    command += [f"-I{folder}" for folder in headers]
    command += [f"-L{INSTALLED / 'lib'}", "-lrushlight_graph", f"-L{core_libraries()}", "-lrushlight"]
    command += [f"-Wl,-rpath,{INSTALLED / 'lib'}", f"-Wl,-rpath,{core_libraries()}"]
    subprocess.run(command, check=True)
    done = subprocess.run([str(built), str(model)], capture_output=True, text=True, env=_run.environment())
    assert done.returncode == 0, done.stderr
    wanted = counting(core.ones(2, 3))["y"].flatten().tolist()
    first, *numbers = done.stdout.split()
    assert (first, [float.fromhex(n) for n in numbers]) == ("add_", wanted)


def test_inputs_are_borrowed_or_owned(library: Any, program: c_void_p, counting: Any) -> None:
    x, freed = core.randn(2, 3), []
    release = Releaser(freed.append)
    for given in (array(x), array(x, release=release, context=7)):
        out = results()
        assert library.rl_program_run(program, byref(given), 1, out, 2) == 0
        assert (out[0].dtype, out[0].ndim, list(out[0].sizes[:2]), list(out[0].strides[:2])) == (
            8,
            2,
            [2, 2],
            [2, 1],
        )
        values = ctypes.cast(out[0].data, POINTER(ctypes.c_float))[:4]
        assert values == counting(x)["y"].flatten().tolist()
        for one in out:
            library.rl_array_free(byref(one))
            assert not one.data
    assert freed == [7]


def test_strided_inputs(library: Any, program: c_void_p, counting: Any) -> None:
    x = core.randn(3, 2)
    strides = (c_int64 * 2)(1, 2)
    out = results()
    assert library.rl_program_run(program, byref(array(x.t(), strides=strides)), 1, out, 2) == 0
    assert ctypes.cast(out[0].data, POINTER(ctypes.c_float))[:4] == counting(x.t())["y"].flatten().tolist()
    for one in out:
        library.rl_array_free(byref(one))


def handle(library: Any, tensor: Any) -> c_void_p:
    made = c_void_p()
    assert library.rl_tensor_from_array(byref(array(tensor)), byref(made)) == 0
    return made


def numbers(library: Any, tensor: c_void_p, count: int) -> list[float]:
    (seen,) = results(1)
    assert library.rl_tensor_to_array(tensor, byref(seen)) == 0
    values = ctypes.cast(seen.data, POINTER(ctypes.c_float))[:count]
    library.rl_array_free(byref(seen))
    return values


def test_tensors_go_in_and_come_out(library: Any, program: c_void_p, counting: Any) -> None:
    x = core.randn(2, 3)
    given, out = (c_void_p * 1)(handle(library, x)), (c_void_p * 2)()
    for _ in range(2):
        assert library.rl_program_call(program, given, 1, out, 2) == 0
        assert numbers(library, c_void_p(out[0]), 4) == counting(x)["y"].flatten().tolist()
        for one in out:
            library.rl_tensor_free(c_void_p(one))
    library.rl_tensor_free(c_void_p(given[0]))


def test_tensors_of_a_program_and_its_file(
    library: Any, program: c_void_p, counting: Any, tmp_path: Path
) -> None:
    weight, calls = c_void_p(), c_void_p()
    assert library.rl_program_tensor(program, b"first.weight", byref(weight)) == 0
    assert numbers(library, weight, 12) == counting.first.weight.flatten().tolist()
    library.rl_tensor_free(weight)
    given, out = (c_void_p * 1)(handle(library, core.ones(2, 3))), (c_void_p * 2)()
    assert library.rl_program_call(program, given, 1, out, 2) == 0
    for one in (*out, given[0]):
        library.rl_tensor_free(c_void_p(one))
    path = tmp_path / "later.rl"
    assert library.rl_program_save(program, str(path).encode()) == 0
    assert load(path).state_dict["calls"].item() == 1
    assert library.rl_program_tensor(program, b"calls", byref(calls)) == 0
    library.rl_program_free(None)
    library.rl_tensor_free(calls)


Call = Callable[[Any, c_void_p, Path], int]
X = core.ones(2, 3)
FAILURES: dict[str, tuple[Call, int, str]] = {
    "load: no path": (lambda lib, p, m: lib.rl_program_load(None, byref(c_void_p())), 2, "(path): must not be null"),
    "load: no result": (lambda lib, p, m: lib.rl_program_load(b"x", None), 2, "rl_program_load(program)"),
    "load: no file": (lambda lib, p, m: lib.rl_program_load(b"/no/file", byref(c_void_p())), 1, "cannot open '/no/file'"),
    "load: no program": (lambda lib, p, m: lib.rl_program_load(__file__.encode(), byref(c_void_p())), 2, "header"),
    "counts": (lambda lib, p, m: lib.rl_program_counts(None, None, None), 2, "rl_program_counts(program)"),
    "name: no program": (lambda lib, p, m: lib.rl_program_input_name(None, 0, None), 2, "rl_program_input_name(program)"),
    "name: no result": (lambda lib, p, m: lib.rl_program_input_name(p, 0, None), 2, "rl_program_input_name(name)"),
    "name: which": (lambda lib, p, m: lib.rl_program_input_name(p, 1, byref(c_char_p())), 4, "1 is out of range for 1 in"),
    "call: no program": (lambda lib, p, m: lib.rl_program_call(None, None, 0, None, 0), 2, "rl_program_call(program)"),
    "call: no inputs": (lambda lib, p, m: lib.rl_program_call(p, None, 1, (c_void_p * 2)(), 2), 2, "(inputs)"),
    "call: no input": (
        lambda lib, p, m: lib.rl_program_call(p, (c_void_p * 1)(), 1, (c_void_p * 2)(), 2), 2, "(inputs[0]): must not"),
    "call: no outputs": (lambda lib, p, m: lib.rl_program_call(p, (c_void_p * 1)(), 1, None, 2), 2, "(outputs)"),
    "call: outputs": (
        lambda lib, p, m: lib.rl_program_call(p, (c_void_p * 1)(), 1, (c_void_p * 1)(), 1), 2, "program has 2"),
    "call: inputs": (lambda lib, p, m: lib.rl_program_call(p, None, 0, (c_void_p * 2)(), 2), 2, "got 0 inputs"),
    "tensor: no program": (lambda lib, p, m: lib.rl_program_tensor(None, b"x", byref(c_void_p())), 2, "(program)"),
    "tensor: no name": (lambda lib, p, m: lib.rl_program_tensor(p, None, byref(c_void_p())), 2, "(name): must not"),
    "tensor: which": (lambda lib, p, m: lib.rl_program_tensor(p, b"x", byref(c_void_p())), 2, "has no tensor 'x'"),
    "tensor: no result": (lambda lib, p, m: lib.rl_program_tensor(p, b"x", None), 2, "rl_program_tensor(result)"),
    "save: no program": (lambda lib, p, m: lib.rl_program_save(None, b"x"), 2, "rl_program_save(program)"),
    "save: no path": (lambda lib, p, m: lib.rl_program_save(p, None), 2, "rl_program_save(path)"),
    "save: no folder": (lambda lib, p, m: lib.rl_program_save(p, b"/no/folder/x"), 1, "/no/folder/x"),
    "run: no program": (lambda lib, p, m: lib.rl_program_run(None, None, 0, None, 0), 2, "rl_program_run(program)"),
    "run: no inputs": (lambda lib, p, m: lib.rl_program_run(p, None, 1, results(), 2), 2, "rl_program_run(inputs)"),
    "run: no outputs": (lambda lib, p, m: lib.rl_program_run(p, byref(array(X)), 1, None, 2), 2, "rl_program_run(outputs)"),
    "run: outputs": (lambda lib, p, m: lib.rl_program_run(p, byref(array(X)), 1, results(1), 1), 2, "program has 2"),
    "run: inputs": (lambda lib, p, m: lib.rl_program_run(p, None, 0, results(), 2), 2, "got 0 inputs, needs 1"),
    "run: output struct": (lambda lib, p, m: lib.rl_program_run(p, byref(array(X)), 1, (Array * 2)(), 2), 2, "outputs[0]"),
    **{
        f"run: {name}": (
            lambda lib, p, m, c=changes: lib.rl_program_run(p, byref(array(X, **c)), 1, results(), 2), 2, message,
        )
        for name, changes, message in (
            ("struct", {"struct_size": 8}, "(inputs[0]).struct_size: must be at least 64, got 8"),
            ("dtype", {"dtype": 99}, "(inputs[0]).dtype"),
            ("another dtype", {"dtype": 5}, "must be float32[2, 3], got int64[2, 3]"),
            ("dimensions", {"ndim": 65}, "(inputs[0]).ndim: must be from 0 to 64"),
            ("no sizes", {"sizes": None}, "(inputs[0]).sizes: must not be null"),
            ("negative size", {"sizes": (c_int64 * 2)(-1, 3)}, "(inputs[0]).sizes"),
            ("huge size", {"sizes": (c_int64 * 2)(2**62, 3)}, "(inputs[0]).sizes"),
            ("another size", {"sizes": (c_int64 * 2)(1, 3)}, "must be float32[2, 3], got float32[1, 3]"),
            ("negative stride", {"strides": (c_int64 * 2)(-3, 1)}, "(inputs[0]).strides"),
            ("huge stride", {"strides": (c_int64 * 2)(2**63 - 1, 1)}, "(inputs[0])"),
            ("no data", {"data": None}, "(inputs[0]).data: must not be null"),
            ("alignment", {"data": X.data_ptr() + 1, "sizes": (c_int64 * 2)(1, 1)}, "must be aligned to 4 bytes"),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_statuses(name: str, library: Any, program: c_void_p, model: Path) -> None:
    call, status, message = FAILURES[name]
    assert call(library, program, model) == status
    assert message in library.rl_error_text().decode()


JUNK = 0x5555555555555555


def test_results_are_empty_where_a_call_fails(library: Any, program: c_void_p) -> None:
    """Whichever argument is wrong, results are null or zero, so that they may be freed."""

    def after(call: Callable[[Any], int], count: int = 1) -> list[int]:
        words = (c_uint64 * count)(*[JUNK] * count)
        assert call(words) != 0
        return list(words)

    assert after(lambda out: library.rl_program_load(None, out)) == [0]
    assert after(lambda out: library.rl_program_counts(None, out, byref(out, 8)), 2) == [0, 0]
    assert after(lambda out: library.rl_program_input_name(None, 0, out)) == [0]
    assert after(lambda out: library.rl_program_tensor(None, b"x", out)) == [0]
    for handle, inputs, count in ((None, None, 0), (program, None, 1), (program, None, 0)):
        assert after(lambda out: library.rl_program_call(handle, inputs, count, out, 2), 2) == [0, 0]  # noqa: B023
        for outputs in (1, 2, 3):
            out = results(outputs)
            for one in out:
                one.data = one.context = JUNK
                one.ndim = 9
            assert library.rl_program_run(handle, inputs, count, out, outputs) != 0
            assert bytes(out) == bytes(results(outputs))


def test_owned_memory_is_released_also_where_a_call_fails(library: Any, program: c_void_p) -> None:
    freed: list[int] = []
    release = Releaser(freed.append)
    for changes in ({"dtype": 99}, {"sizes": (c_int64 * 2)(1, 3)}, {}):
        given = array(X, release=release, context=len(freed) + 1, **changes)
        count = 2 if changes else 1  # 1 is too few outputs
        assert library.rl_program_run(program, byref(given), 1, results(count), count) != 0
    assert freed == [1, 2, 3]


def test_null_may_be_freed(library: Any) -> None:
    library.rl_program_free(None)
    library.rl_array_free(None)
    library.rl_array_free(byref(Array()))
    assert library.rl_c_version() == 1


def test_the_list_of_symbols_is_frozen() -> None:
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", str(INSTALLED / "lib" / "librushlight_graph.so")],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    names = [line.split()[-1] for line in lines]
    assert (
        sorted(name for name in names if name.startswith("rl_"))
        == (HERE / "c_symbols.txt").read_text().split()
    )
