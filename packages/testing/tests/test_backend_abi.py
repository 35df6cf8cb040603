"""Plug-ins of other versions: another ABI is rejected, and a shorter or longer struct of the same ABI works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rushlight_testing.native import compile_plugin

pytestmark = pytest.mark.swap


def run(program: str, library: Path) -> None:
    """Run a program in a new process, because a process can have only one backend of a name."""
    text = f"import rushlight_core as core\nfrom rushlight_core import devices\nlibrary = {str(library)!r}\n{program}"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


COMPUTES = """
assert devices.load_backend(library) == "small"
x = core.ones(2, 3, device="small")
assert (x + 1).cpu().tolist() == [[2.0] * 3] * 2
assert (2 + x).t().sum().item() == 18
"""

LACKS = """
for needed, call in {
    "streams": lambda: core.Stream("small"),
    "events": lambda: core.Event("small"),
    "pinned memory": lambda: core.ones(2).pin_memory("small"),
}.items():
    try:
        call()
    except NotImplementedError as error:
        assert "small" in str(error) and needed in str(error), error
    else:
        raise AssertionError(needed)
assert core.ones(2).to("small", non_blocking=True).cpu().tolist() == [1.0, 1.0]
try:
    x.exp()
except NotImplementedError as error:
    assert "exp" in str(error) and "small:0" in str(error), error
else:
    raise AssertionError
"""


def test_another_abi_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for abi in (1, 3):
        library = compile_plugin("small_backend", tmp_path, [f"-DSMALL_ABI={abi}"])
        run(
            f"""
try:
    devices.load_backend(library)
except RuntimeError as error:
    text = str(error).splitlines()[0]
    assert "built for version {abi} " in text and "core supports version 2" in text, text
else:
    raise AssertionError
assert devices.device_count("cpu") == 1
""",
            library,
        )


def test_what_a_shorter_struct_lacks_is_missing(tmp_path: Path) -> None:
    options = ["-DSMALL_SIZE=offsetof(Backend, create_stream)"]
    run(COMPUTES + LACKS, compile_plugin("small_backend", tmp_path, options))


def test_a_longer_struct_works(tmp_path: Path) -> None:
    run(COMPUTES + LACKS, compile_plugin("small_backend", tmp_path, ["-DSMALL_LATER"]))


def test_a_struct_without_what_is_required_is_refused(tmp_path: Path) -> None:
    library = compile_plugin("small_backend", tmp_path, ["-DSMALL_SIZE=offsetof(Backend, kernel)"])
    run(
        """
try:
    devices.load_backend(library)
except ValueError as error:
    assert "'small' lacks the function 'kernel'" in str(error), error
else:
    raise AssertionError
""",
        library,
    )


def test_device_fallback(tmp_path: Path) -> None:
    """With a device fallback, operators without a kernel run on the CPU, and warn once."""
    run(
        COMPUTES
        + """
import warnings

assert core._C._device_fallback() == "error"
core._C._set_device_fallback("warn")
y = core.tensor([[0.0, 1.0], [4.0, 9.0]], device="small")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert y.sqrt().cpu().tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert y.sqrt().device == y.device
    assert y.t().sqrt_().cpu().tolist() == [[0.0, 2.0], [1.0, 3.0]]
assert [str(w.message) for w in caught] == [
    "sqrt: no kernel for device small:0: the operator ran on the CPU, and 32 bytes were copied"
], [str(w.message) for w in caught]
warnings.simplefilter("ignore")
assert y.cpu().tolist() == [[0.0, 1.0], [2.0, 3.0]]
assert y.amax(0).cpu().tolist() == [2.0, 3.0]
assert [t.cpu().tolist() for t in y.max(1)] == [[1.0, 3.0], [1, 1]]
assert y.nonzero().cpu().tolist() == [[0, 1], [1, 0], [1, 1]]
assert core.mm(y, y).cpu().tolist() == [[2.0, 3.0], [6.0, 11.0]]
assert y.index_add_(0, core.tensor([1], device="small"), y[:1]).cpu().tolist() == [[0.0, 1.0], [2.0, 4.0]]
assert y[:, 1].sort(descending=True)[1].cpu().tolist() == [1, 0]
# It takes row-major outputs alone, so convolutions and pools do not follow their input's format, as they do on the CPU.
image = core.arange(32.0).view(1, 2, 4, 4).contiguous(memory_format=core.channels_last)
weight = core.ones(2, 2, 1, 1)
wanted, got = core.conv2d(image, weight), core.conv2d(image.to("small"), weight.to("small"))
assert wanted.stride() == image.stride() == (32, 1, 8, 2)
assert got.stride() == (32, 16, 4, 1)
assert got.cpu().tolist() == wanted.tolist()
wanted, got = core.max_pool2d(image, 2), core.max_pool2d(image.to("small"), 2)
assert wanted.stride() == (8, 1, 4, 2)
assert got.stride() == (8, 4, 2, 1)
assert got.cpu().tolist() == wanted.tolist()
core.manual_seed(3)
a = core.empty(5, device="small").uniform_()
core.manual_seed(3)
assert core.empty(5).uniform_().tolist() == a.cpu().tolist()
# Lists longer than any mask of bits: each is written.
params = [core.ones(2, device="small") for _ in range(100)]
grads = [core.full((2,), 2.0, device="small") for _ in params]
core._foreach_add_(params, grads)
assert all(p.cpu().tolist() == [3.0, 3.0] for p in params)
warnings.simplefilter("error")
try:
    y.log()
except UserWarning as error:
    assert "log: no kernel" in str(error)
else:
    raise AssertionError
core._C._set_device_fallback("error")
for wrong, kind in (("always", ValueError), (1, TypeError)):
    try:
        core._C._set_device_fallback(wrong)
    except kind as error:
        assert "device_fallback" in str(error)
    else:
        raise AssertionError
""",
        compile_plugin("small_backend", tmp_path),
    )


def test_dtypes_that_a_kernel_lacks(tmp_path: Path) -> None:
    """Calls with these dtypes are handled as if there were no kernel, and `duty` prints the dtypes."""
    library = compile_plugin(
        "small_backend", tmp_path, ["-DSMALL_LACKS=1u<<int(DType::Float64)|1u<<int(DType::Int64)"]
    )
    run(
        COMPUTES
        + """
import warnings

double = core.ones(2, dtype=core.float64, device="small")
for call in (lambda: double + 1, lambda: double.add_(1), lambda: core.add(double, 1, out=double), lambda: x[0, :2] + double,
             lambda: core.arange(3, device="small") + 1):
    try:
        call()
    except NotImplementedError as error:
        assert "no kernel for device small:0 and dtype" in str(error), error
        assert "device_fallback" in str(error), error
    else:
        raise AssertionError
assert double.cpu().tolist() == [1.0, 1.0]
assert double.sum().item() == 2
assert (core.arange(3, device="small") + 0.5).cpu().tolist() == [0.5, 1.5, 2.5]  # computed in float32
core._C._set_device_fallback("warn")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert (double + 1).cpu().tolist() == [2.0, 2.0]
    assert (x + 1).cpu().tolist() == [[2.0] * 3] * 2
assert [str(w.message) for w in caught] == [
    "add: no kernel for device small:0 and dtype float64: the operator ran on the CPU, and 32 bytes were copied"
], [str(w.message) for w in caught]
""",
        library,
    )
    command = [
        sys.executable,
        "-P",
        "-m",
        "rushlight_core.codegen",
        "duty",
        "small",
        "--backend",
        str(library),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    (line,) = [line for line in done.stdout.splitlines() if line.split()[:1] == ["add"]]
    assert line.endswith(", lacks int64 float64")
