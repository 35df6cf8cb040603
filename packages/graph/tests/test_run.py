"""rushlight-run gives the same results in a process without Python."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight_core as core
from rushlight_graph import _run, export, save


def run(*words: Any) -> subprocess.CompletedProcess[str]:
    command = [str(_run.program()), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=_run.environment())


@pytest.fixture
def model(counting: Any, tmp_path: Path) -> Path:
    path = tmp_path / "model.rl"
    save(export(counting, (core.ones(2, 3),)), path)
    return path


def test_results_are_eagers_bit_for_bit(counting: Any, model: Path, tmp_path: Path) -> None:
    x = core.randn(2, 3)
    np.save(tmp_path / "x.npy", x.numpy())
    done = run(
        model, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", "--output", tmp_path / "n.npy"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    wanted = counting(x)
    assert np.load(tmp_path / "y.npy").tobytes() == wanted["y"].numpy().tobytes()
    assert np.load(tmp_path / "n.npy") == 1


def test_it_needs_no_python(model: Path) -> None:
    needed = subprocess.run(
        ["ldd", str(_run.program())], capture_output=True, text=True, check=True, env=_run.environment()
    ).stdout
    assert "librushlight_graph.so" in needed
    assert "librushlight.so" in needed
    assert "python" not in needed.replace(str(_run.program().parents[2]), "").replace(sys.prefix, "").lower()
    assert "not found" not in needed


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "uint16",
              "uint32", "uint64", "complex64", "complex128"],
)  # fmt: skip
def test_arrays_of_every_dtype(dtype: str, function_module: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    array = (rng.integers(0, 2, (2, 3)) if dtype == "bool" else rng.integers(0, 99, (2, 3))).astype(dtype)
    save(export(function_module(lambda x: x.t().clone()), (core.from_numpy(array),)), tmp_path / "m")
    np.save(tmp_path / "fortran.npy", np.asfortranarray(array))
    done = run(tmp_path / "m", "--input", tmp_path / "fortran.npy", "--output", tmp_path / "y.npy")
    assert done.returncode == 0, done.stderr
    back = np.load(tmp_path / "y.npy")
    assert back.dtype == array.dtype
    assert (back == array.T).all()


def test_options_may_have_an_equals_sign(model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    for words in (
        (model, "--input", tmp_path / "x.npy", "--output", tmp_path / "a.npy"),
        (f"--output={tmp_path / 'b.npy'}", f"--input={tmp_path / 'x.npy'}", model),
    ):
        done = run(*words)
        assert done.returncode == 0, done.stderr
    assert (np.load(tmp_path / "a.npy") == np.load(tmp_path / "b.npy")).all()


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"rushlight-run {version('rushlight-graph')}\n")


def test_print_shows_the_operators(model: Path) -> None:
    done = run(model, "--print")
    assert done.returncode == 0
    assert done.stdout.count(" = linear(") == 2


def test_what_is_wrong_is_said(model: Path, tmp_path: Path) -> None:
    (tmp_path / "junk").write_bytes(b"\x93NUMPY\x01\x00\xff\xff")
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    np.save(tmp_path / "other.npy", np.ones((3, 3), np.float32))
    np.save(tmp_path / "objects.npy", np.array(["text"]))
    np.save(tmp_path / "swapped.npy", np.ones((2, 3), ">f4"))
    good = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "version.npy").write_bytes(good[:6] + b"\x09" + good[7:])
    x = tmp_path / "x.npy"
    for words, status, message in (
        ((), 2, "needs a model\nusage:"),
        ((model, model), 2, "got a second model"),
        ((model, "--frob"), 2, "unknown argument '--frob'"),
        ((model, "--input"), 2, "--input needs a value"),
        ((model, "--print=yes"), 2, "--print takes no value"),
        ((model, "--save", ""), 2, "--save needs a value that is not empty"),
        ((model, "--output="), 2, "--output needs a value that is not empty"),
        ((model, "--print", "--draw"), 2, "got both --print and --draw"),
        ((model, "--print", "--output", tmp_path / "y"), 2, "--print does not run the program"),
        ((model, "--input", tmp_path), 1, f"cannot read '{tmp_path}': Is a directory"),
        ((model, "--times", "0"), 2, "--times needs a positive number"),
        ((model, f"--times={2**70}"), 2, "--times needs a positive number"),
        ((tmp_path / "missing",), 1, "cannot open"),
        ((model,), 1, "got 0 inputs, needs 1"),
        ((model, "--input", tmp_path / "missing"), 1, "cannot open"),
        ((model, "--input", tmp_path / "junk"), 1, "it is not a .npy file"),
        ((model, "--input", tmp_path / "version.npy"), 1, "its version of the .npy format is not supported"),
        ((model, "--input", tmp_path / "objects.npy"), 1, "its dtype '<U4' is not supported"),
        ((model, "--input", tmp_path / "swapped.npy"), 1, "hint: convert the array to little-endian numbers"),
        ((model, "--input", tmp_path / "other.npy"), 1, "input 'x' must be float32[2, 3], got float32[3, 3]"),
        (
            (model, "--input", x, *["--output", tmp_path / "y"] * 3),
            1,
            "got 3 --output files, but the program has 2",
        ),
        ((model, "--input", x, "--output", tmp_path / "no" / "y"), 1, "cannot write"),
        ((x,), 1, "program:"),
    ):
        done = run(*words)
        assert (done.returncode, message in done.stderr) == (status, True), (words, done.stderr)


HEADER = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("\n", ""),
        ("\n", "  \n\n"),
        ("\n", "x\n"),
        (", }", "}"),
        (", }", ",, }"),
        (", }", ""),
        (", }", ", 'x': 1}"),
        (", }", ", 'x': {'shape': (9,)}}"),
        ("'", '"'),
        (":", " : "),
        ("'shape': (2, 3), ", ""),
        ("<f4", "=f4"),
        ("<f4", "|f4"),
        ("<f4", "f4"),
        ("<f4'", "<f4"),
        ("'<f4'", "4"),
        ("False", "True"),
        ("False", "1"),
        ("False", "Truely"),
        ("False", "None"),
        ("(2, 3)", "[2, 3]"),
        ("(2, 3)", "(2 3)"),
        ("(2, 3)", "(2,,3)"),
        ("(2, 3)", "(2,3,)"),
        ("(2, 3)", "(6)"),
        ("(2, 3)", "6"),
        ("(2, 3)", "(-2, -3)"),
        ("(2, 3)", "(2.0, 3)"),
        ("(2, 3)", "(2, 3"),
        ("(2, 3)", "(2, 4)"),
        ("(2, 3)", f"({2**62}, 8)"),
        ("(2, 3)", f"({2**64}, 8)"),
        ("(2, 3)", f"(0, {2**62}, {2**62})"),
        ("(2, 3), ", f"({2**62}, {2**62}, 0), "),
    ],
)
def test_headers_are_read_as_numpy_reads_them(
    old: str, new: str, function_module: Any, tmp_path: Path
) -> None:
    """A header that NumPy refuses is refused, and one that NumPy accepts has the same meaning."""
    header = HEADER.replace(old, new) if old else HEADER
    values = np.arange(6, dtype=np.float32)
    file, result = tmp_path / "x.npy", tmp_path / "y.npy"
    size = len(header).to_bytes(2, "little")
    file.write_bytes(b"\x93NUMPY\x01\x00" + size + header.encode() + values.tobytes())
    try:
        wanted = np.load(file)
    except Exception:
        wanted = None
    save(export(function_module(lambda x: x.clone()), (core.ones(2, 3),)), tmp_path / "m")
    done = run(tmp_path / "m", "--input", file, "--output", result)
    if wanted is None:
        assert done.returncode == 1
        assert f"'{file}': " in done.stderr or "overflows a 64-bit integer" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert (np.load(result) == wanted).all()


@pytest.mark.parametrize("dtype", ["<u1", ">u1", "=b1", "|i1"])
def test_bytes_have_no_order(dtype: str, function_module: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(3, dtype))
    content = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(content.replace(np.dtype(dtype).str.encode(), dtype.encode()))
    given = core.from_numpy(np.ones(3, dtype[1:]))
    save(export(function_module(lambda x: x.clone()), (given,)), tmp_path / "m")
    done = run(tmp_path / "m", "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "y.npy").dtype == dtype[1:]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
@pytest.mark.parametrize("word", ["--print", "--draw", "--help", "--version"])
def test_output_that_cannot_be_written_is_an_error(word: str, model: Path) -> None:
    command = [str(_run.program()), str(model), word]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=_run.environment())
    assert done.returncode == 1
    assert "cannot write to the standard output: No space left on device" in done.stderr


def test_the_command_is_the_program(model: Path) -> None:
    code = f"import sys; from rushlight_graph._run import main; sys.argv[1:] = [{str(model)!r}, '--print']; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0
    assert "linear(" in done.stdout
