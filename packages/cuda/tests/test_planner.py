"""Convolutions planned with cuDNN itself, without a device: every form of convolution that the plug-in describes has an
operation graph that the library accepts, and plans for a GPU whose properties are given as a text.

The tests need the package nvidia-cudnn-cu13, and nothing else of CUDA. The session `cuda-plans` installs it.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

HERE = Path(__file__).resolve().parent
CUDA = HERE.parent.parent / "core" / "src" / "cuda"

# The properties of an H200, as cuDNN writes them for a device. Documents of NVIDIA state these numbers, except for the
# clocks; no text from a device was available.
H200 = {
    "deviceName": "NVIDIA H200",
    "deviceVer": 900,
    "driverVer": 13000,
    "cudaDeviceId": 0,
    "pciDeviceId": 0,
    "multiProcessorCount": 132,
    "warpSize": 32,
    "maxGridSize": [2147483647, 65535, 65535],
    "maxBlockSize": [1024, 1024, 64],
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048,
    "maxCtasPerSM": 32,
    "regsPerBlock": 65536,
    "maxRegistersPerSM": 65536,
    "maxSharedMemoryPerBlock": 49152,
    "maxSharedMemoryPerBlockOptin": 232448,
    "reservedSharedMemoryPerBlock": 1024,
    "l2CacheSize": 62914560,
    "totalGlobalMem": 150110011392,
    "smClockRateKHz": 1980000,
    "memClockRateKHz": 3201000,
    "isTccDriver": 0,
    "supportCoopLaunch": 1,
}

DTYPES = {"float16": 6, "bfloat16": 7, "float32": 8, "float64": 9}  # numbers of DType
KINDS = ("forward", "data", "weight")


class Case(NamedTuple):
    """The sizes of the input and the weight, with two or three spatial dimensions."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    stride: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)


CASES = {
    "1d": Case((2, 3, 1, 11), (4, 3, 1, 3), padding=(0, 1)),
    "2d": Case((8, 64, 28, 28), (128, 64, 3, 3), padding=(1, 1)),
    "odd sizes": Case((2, 3, 7, 6), (5, 3, 3, 2)),
    "strided": Case((3, 4, 9, 8), (6, 4, 3, 3), stride=(2, 3), padding=(1, 0)),
    "dilated": Case((2, 2, 9, 9), (3, 2, 3, 2), padding=(2, 2), dilation=(2, 3)),
    "pointwise": Case((3, 6, 4, 5), (4, 6, 1, 1)),
    "pointwise, strided": Case((2, 64, 5, 5), (64, 64, 1, 1), stride=(2, 2)),
    "groups": Case((2, 6, 5, 4), (4, 3, 2, 2)),
    "many groups": Case((2, 128, 14, 14), (128, 4, 3, 3), padding=(1, 1)),
    "stem": Case((8, 3, 224, 224), (64, 3, 7, 7), stride=(2, 2), padding=(3, 3)),
    "3d": Case((2, 2, 4, 5, 3), (3, 2, 2, 3, 2), (1, 1, 1), (1, 0, 1), (1, 1, 1)),
    "3d, strided": Case((2, 16, 8, 8, 8), (32, 16, 3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1)),
    "3d, groups": Case((2, 16, 8, 8, 8), (32, 8, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    "3d, dilated": Case((2, 16, 8, 8, 8), (32, 16, 3, 3, 3), (1, 1, 1), (2, 2, 2), (2, 2, 2)),
}


class Form(NamedTuple):
    case: str
    dtype: str
    channels_last: bool
    kind: str
    tf32: bool
    deterministic: bool
    alignment: int

    def numbers(self) -> list[int]:
        """The members of ConvolutionForm, in order."""
        x, w, stride, padding, dilation = CASES[self.case]
        taps = zip(x[2:], w[2:], stride, padding, dilation, strict=True)
        y = (x[0], w[0], *((size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in taps))
        numbers = [KINDS.index(self.kind), DTYPES[self.dtype], len(stride), self.channels_last]
        numbers += [self.tf32, self.deterministic, self.alignment]
        for entries, room in ((x, 5), (w, 5), (y, 5), (stride, 3), (padding, 3), (dilation, 3)):
            numbers += [*entries, *[0] * (room - len(entries))]
        return [int(number) for number in numbers]


def forms() -> list[Form]:
    """Every form of these cases that the plug-in may describe."""
    made = []
    for case, dtype, channels_last, kind, tf32, deterministic in itertools.product(
        CASES, DTYPES, (False, True), KINDS, (False, True), (False, True)
    ):
        if tf32 and dtype != "float32":
            continue
        size = {"float32": 4, "float64": 8}.get(dtype, 2)
        made += [
            Form(case, dtype, channels_last, kind, tf32, deterministic, alignment) for alignment in (16, size)
        ]
    return made


class Offer(NamedTuple):
    engines: int
    configurations: int
    permitted: int
    plans: int
    workspace: int


def find_library() -> Path | None:
    for folder in sys.path:
        path = Path(folder) / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9"
        if path.exists():
            return path
    return None


LIBRARY = find_library()
pytestmark = pytest.mark.skipif(
    LIBRARY is None, reason="cuDNN is not installed: the package nvidia-cudnn-cu13 contains it"
)


@pytest.fixture(scope="session")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("planner") / "planner.so"
    sources = [CUDA / "cudnn.cpp", CUDA / "convolution_plans.cpp", CUDA / "failure.cpp"]
    sources += [HERE / "planner" / "planner.cpp"]
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O1", "-fPIC", "-shared", "-fvisibility=hidden"]
    command += ["-DRUSHLIGHT_CPU=cuda_device", f"-I{HERE / 'on_host'}", f"-I{CUDA.parent}"]
    command += [f"-I{CUDA.parent.parent / 'include'}", *map(str, sources), "-o", str(made), "-ldl"]
    subprocess.run([*command, "-Wl,--no-undefined"], check=True)
    return made


def plan(planner: Path, given: list[list[int]], device: dict[str, Any] = H200) -> list[Offer | str]:
    """What cuDNN offers for each form, or the text of an error."""
    command = [sys.executable, str(HERE / "planner" / "worker.py"), str(LIBRARY), str(planner)]
    done = subprocess.run(
        [*command, json.dumps(device)], input=json.dumps(given), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [offer if isinstance(offer, str) else Offer(*offer) for offer in json.loads(done.stdout)]


@pytest.fixture(scope="session")
def offers(planner: Path) -> dict[Form, Offer | str]:
    every = forms()
    return dict(zip(every, plan(planner, [form.numbers() for form in every]), strict=True))


@pytest.mark.parametrize("channels_last", [False, True], ids=["row-major", "channels-last"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_every_form_has_plans(offers, case, dtype, channels_last):
    found = {form: offer for form, offer in offers.items() if form[:3] == (case, dtype, channels_last)}
    assert len(found) == 3 * 2 * 2 * (2 if dtype == "float32" else 1)
    for form, offer in found.items():
        assert isinstance(offer, Offer), (form, offer)
        assert offer.engines > 0, form
        assert 0 < offer.plans <= offer.permitted <= offer.configurations, (form, offer)
        assert 0 <= offer.workspace <= 1 << 30, (form, offer)


def test_switches_exclude_engines(offers):
    """Of the engines for float32, those that use tensor cores compute in TF32, and some add in any order."""

    def permitted(kind: str, tf32: bool, deterministic: bool) -> int:
        return offers[Form("2d", "float32", True, kind, tf32, deterministic, 16)].permitted

    for kind in KINDS:
        assert permitted(kind, False, False) < permitted(kind, True, False)
    for kind in ("data", "weight"):
        assert permitted(kind, False, True) < permitted(kind, False, False)


def test_channels_last_needs_no_conversion(offers):
    """Row-major tensors of a half type are converted in the workspace, because tensor cores read channels-last ones."""
    workspaces = [
        offers[Form("2d", "float16", last, "forward", False, False, 16)].workspace for last in (0, 1)
    ]
    assert workspaces[0] > 1 << 20
    assert workspaces[1] == 0


def test_errors_name_the_call(planner):
    form = Form("2d", "float32", True, "forward", True, False, 16).numbers()
    form[7 + 10 + 2] += 1  # the height of the output
    (text,) = plan(planner, [form])
    assert "describing a convolution: cuDNN returned CUDNN_STATUS_BAD_PARAM" in text
    (text,) = plan(planner, [form], {"deviceName": "unknown"})
    assert "describing a device: cuDNN returned CUDNN_STATUS_BAD_PARAM" in text


def test_the_numbers_of_the_header():
    """The header for a host compiler has the library's numbers."""
    enumerator = re.compile(r"^ *(CUDNN_\w+)(?: CUDNN_DEPRECATED_ENUM)? *= (\d+)", re.MULTILINE)
    given = dict(enumerator.findall((LIBRARY.parent.parent / "include" / "cudnn_graph.h").read_text()))
    own = dict(enumerator.findall((HERE / "on_host" / "cudnn_graph.h").read_text()))
    assert len(own) > 90
    assert own == {name: given.get(name) for name in own}
