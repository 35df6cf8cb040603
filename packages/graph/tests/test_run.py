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


def test_the_command_is_the_program(model: Path) -> None:
    code = f"import sys; from rushlight_graph._run import main; sys.argv[1:] = [{str(model)!r}, '--print']; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0
    assert "linear(" in done.stdout
