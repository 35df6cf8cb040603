"""Convolutions through the wrapper of cuDNN, with the fake of the library in `fake_cudnn`: which engine is chosen, which
plans are kept, and what happens without the library."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import rushlight as torch
import rushlight_core as core
from rushlight.nn import functional

pytestmark = pytest.mark.usefixtures("driver")

# The engines of the fake that can compute something, in the order in which it recommends them. The last one is also its
# fallback, which comes after all others.
TENSOR_CORE, NONDETERMINISTIC, PLAIN = 5, 6, 7
FLOAT, DOUBLE = 1 << 0, 1 << 1  # cuDNN's data types, as bits


@pytest.fixture(autouse=True)
def switches(cudnn):
    """Restores the switches, and makes all engines of the fake available and fast."""
    before = torch.backends.cudnn.set_flags()
    yield
    torch.backends.cudnn.set_flags(*before)
    cudnn.fake_cudnn_refuse(0)
    for engine in (TENSOR_CORE, NONDETERMINISTIC, PLAIN):
        cudnn.fake_cudnn_slow(engine, 0)


def test_version(cudnn):
    assert torch.backends.cudnn.version() == cudnn.cudnnGetVersion() >= 91900


TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-12}


def values(dtype: str, *shape: int) -> torch.Tensor:
    n = torch.Size(shape).numel()
    return ((torch.arange(n) * 7 % 23 - 11) / 8).reshape(shape).to(getattr(torch, dtype))


def close(device: torch.Tensor, host: torch.Tensor, dtype: str) -> None:
    assert device.device.type == "cuda"
    scale = max(1.0, float(host.double().abs().max()))
    torch.testing.assert_close(device.cpu(), host, rtol=0, atol=TOLERANCE[dtype] * scale)


def compare(function, tensors, dtype: str) -> None:
    """Compare the result and all gradients on both devices."""
    here = [t.clone().requires_grad_() for t in tensors]
    there = [t.cuda().requires_grad_() for t in tensors]
    expected, found = function(*here), function(*there)
    close(found.detach(), expected.detach(), dtype)
    grad = values(dtype, *expected.shape)
    expected.backward(grad)
    found.backward(grad.cuda())
    for one, other in zip(there, here, strict=True):
        close(one.grad, other.grad, dtype)


def images(channels: int = 3, size: int = 6, dtype: str = "float32") -> tuple[torch.Tensor, torch.Tensor]:
    """An input and a weight whose sizes differ between tests, so that no plan is known."""
    return values(dtype, 2, channels, size, size), values(dtype, 4, channels, 3, 3)


def run(x: torch.Tensor, w: torch.Tensor, dtype: str = "float32", **options) -> torch.Tensor:
    y = functional.conv2d(x.cuda(), w.cuda(), **options)
    close(y, functional.conv2d(x, w, **options), dtype)
    return y


def test_the_first_permitted_engine_that_works_is_used(cudnn):
    run(*images(size=17))
    assert cudnn.fake_cudnn_last_engine() == TENSOR_CORE


def test_tf32_may_be_forbidden(cudnn):
    x = torch.full((1, 1, 4, 4), 1 + 2**-12)
    w = torch.ones(1, 1, 3, 3)
    assert float(functional.conv2d(x.cuda(), w.cuda())[0, 0, 0, 0]) == 9.0
    torch.backends.cudnn.allow_tf32 = False
    y = functional.conv2d(x.cuda(), w.cuda())
    assert cudnn.fake_cudnn_last_engine() == NONDETERMINISTIC
    close(y, functional.conv2d(x, w), "float32")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_tensor_cores_are_forbidden_for_float32_only(cudnn, dtype):
    torch.backends.cudnn.allow_tf32 = False
    run(*images(size=18, dtype=dtype), dtype)
    assert cudnn.fake_cudnn_last_engine() == TENSOR_CORE


@pytest.mark.parametrize("switch", ["backends.cudnn", "use_deterministic_algorithms"])
def test_only_deterministic_engines(cudnn, switch):
    torch.backends.cudnn.allow_tf32 = False
    if switch == "backends.cudnn":
        torch.backends.cudnn.deterministic = True
    else:
        torch.use_deterministic_algorithms(True)
    try:
        run(*images(size=19))
    finally:
        torch.use_deterministic_algorithms(False)
    assert cudnn.fake_cudnn_last_engine() == PLAIN


def test_benchmark_chooses_the_fastest_engine(cudnn):
    x, w = images(size=12)
    run(x, w)
    assert cudnn.fake_cudnn_last_engine() == TENSOR_CORE
    cudnn.fake_cudnn_slow(TENSOR_CORE, 30)
    cudnn.fake_cudnn_slow(NONDETERMINISTIC, 30)
    torch.backends.cudnn.benchmark = True
    run(x, w)  # times all engines, although a plan is known
    before = cudnn.fake_cudnn_executions()
    run(x, w)
    assert (cudnn.fake_cudnn_executions(), cudnn.fake_cudnn_last_engine()) == (before + 1, PLAIN)
    torch.backends.cudnn.benchmark = False
    run(x, w)
    assert cudnn.fake_cudnn_last_engine() == PLAIN


@pytest.mark.parametrize(("limit", "timed"), [(1, 1), (2, 2), (10, 4), (0, 4)])
def test_benchmark_limit(cudnn, limit, timed):
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = limit
    before = cudnn.fake_cudnn_executions()
    run(*images(size=20 + limit))
    assert cudnn.fake_cudnn_executions() - before == 4 * timed  # a first run, and three that are timed


def test_plans_are_kept(cudnn):
    x, w = images(size=13)
    run(x, w)
    plans, executions = cudnn.fake_cudnn_plans(), cudnn.fake_cudnn_executions()
    run(x, w)
    assert (cudnn.fake_cudnn_plans(), cudnn.fake_cudnn_executions()) == (plans, executions + 1)
    run(x, w, padding=1)
    assert cudnn.fake_cudnn_plans() > plans


def test_the_oldest_plans_are_removed(cudnn):
    """The tested plug-in keeps the plans of 8 forms."""
    w = values("float32", 1, 1, 1, 2)

    def form(width: int) -> None:
        functional.conv2d(values("float32", 1, 1, 1, width).cuda(), w.cuda())

    def planned(width: int) -> bool:
        before = cudnn.fake_cudnn_plans()
        form(width)
        return cudnn.fake_cudnn_plans() > before

    for width in range(40, 48):
        form(width)
    descriptors = cudnn.fake_cudnn_live_descriptors()
    assert not planned(40)
    assert planned(48)
    assert not planned(40)  # used since
    assert planned(41)
    assert cudnn.fake_cudnn_live_descriptors() == descriptors


def test_alignment(cudnn):
    """Plans are made for the alignment of the given memory."""
    w = values("float32", 2, 1, 2, 2)
    for offset, alignment in ((0, 16), (1, 4), (2, 8)):
        x = values("float32", 25 + offset)
        run(x[offset:].reshape(1, 1, 5, 5), w)
        there = x.cuda()[offset:].reshape(1, 1, 5, 5)
        y = functional.conv2d(there, w.cuda())
        assert cudnn.fake_cudnn_last_alignment() == alignment
        close(y, functional.conv2d(x[offset:].reshape(1, 1, 5, 5), w), "float32")


def last_format(t: torch.Tensor) -> torch.Tensor:
    return t.to(memory_format=torch.channels_last if t.ndim == 4 else torch.channels_last_3d)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("weight_too", [False, True])
@pytest.mark.parametrize(
    ("function", "shape", "kernel", "options"),
    [
        (functional.conv2d, (2, 6, 7, 5), (4, 6, 3, 2), {"padding": 1, "stride": (2, 1)}),
        (functional.conv2d, (2, 6, 5, 5), (4, 3, 2, 2), {"groups": 2}),
        (functional.conv_transpose2d, (2, 4, 4, 3), (4, 5, 3, 2), {"stride": 2, "output_padding": 1}),
        (functional.conv3d, (2, 3, 4, 5, 4), (4, 3, 2, 3, 2), {"padding": (1, 0, 1)}),
        (functional.conv2d, (2, 40, 9, 9), (70, 40, 1, 1), {}),
    ],
)
def test_channels_last(cudnn, function, shape, kernel, options, weight_too, dtype, bias):
    x, w = last_format(values(dtype, *shape)), values(dtype, *kernel)
    if weight_too:
        w = last_format(w)
    channels = kernel[1] if function is functional.conv_transpose2d else kernel[0]
    tensors = [x, w, *([values(dtype, channels)] if bias else [])]
    compare(lambda *given: function(*given, **options), tensors, dtype)
    assert cudnn.fake_cudnn_last_channels_last() == 1
    here = [t.cuda().requires_grad_() for t in tensors]
    y = function(*here, **options)
    format = torch.channels_last if x.ndim == 4 else torch.channels_last_3d
    assert y.is_contiguous(memory_format=format)
    y.backward(torch.ones_like(y))
    assert here[0].grad.is_contiguous(memory_format=format)
    assert here[1].grad.stride() == w.stride()


def test_channels_last_is_not_copied(driver, cudnn):
    """A convolution of channels-last tensors, forward and backward, is one call of the library for each result."""
    x, w = (last_format(t).cuda() for t in images(channels=4, size=11))
    functional.conv2d(x, w)
    torch.cuda.synchronize()
    before = driver.fake_cuda_launches()
    y = functional.conv2d(x, w)
    assert driver.fake_cuda_launches() == before + 1
    grad = last_format(torch.ones(*y.shape)).cuda()
    arguments = ((1, 1), (0, 0), (1, 1), False, (0, 0), 1, (1, 1, 0))
    for _ in range(2):  # the first call makes plans
        before = driver.fake_cuda_launches()
        core._C._call_boxed("convolution_backward", grad, x, w, *arguments)
    assert driver.fake_cuda_launches() == before + 2


@pytest.mark.parametrize("channels_last", [False, True])
def test_without_an_engine_the_own_kernel_computes(cudnn, channels_last):
    cudnn.fake_cudnn_refuse(FLOAT)
    before = cudnn.fake_cudnn_executions()
    x, w = images(channels=5, size=9)
    if channels_last:
        x, w = last_format(x), last_format(w)
    for _ in range(2):
        compare(lambda *given: functional.conv2d(*given, padding=1), [x, w, values("float32", 4)], "float32")
    assert cudnn.fake_cudnn_executions() == before
    run(*(t.double() for t in (x, w)), "float64")
    assert cudnn.fake_cudnn_executions() == before + 1


def test_disabled(cudnn):
    torch.backends.cudnn.enabled = False
    before = cudnn.fake_cudnn_executions()
    run(*images(size=14))
    with torch.backends.cudnn.flags(enabled=True):
        run(*images(size=14))
    assert cudnn.fake_cudnn_executions() == before + 1


def test_large_output_padding_is_not_for_the_library(cudnn):
    """With an output_padding that is larger than the stride, the sizes are not those of a gradient."""
    before = cudnn.fake_cudnn_executions()
    x, w = values("float32", 1, 2, 4, 4), values("float32", 2, 3, 2, 2)
    options = {"dilation": 3, "output_padding": 2}
    close(
        functional.conv_transpose2d(x.cuda(), w.cuda(), **options),
        functional.conv_transpose2d(x, w, **options),
        "float32",
    )
    assert cudnn.fake_cudnn_executions() == before


def test_several_threads(cudnn):
    """The fake aborts if two threads use a handle or a plan at once."""
    x, w = images(size=8)
    expected = functional.conv2d(x, w)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(20):
                    close(functional.conv2d(x.cuda(), w.cuda()), expected, "float32")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert cudnn.fake_cudnn_handles() <= 5


def test_a_graph_keeps_its_plan(cudnn):
    torch.backends.cudnn.benchmark = True
    x, w = (t.cuda() for t in images(size=10))
    before = cudnn.fake_cudnn_executions()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = functional.conv2d(x, w)
    assert cudnn.fake_cudnn_executions() == before + 1  # nothing is timed
    for width in range(60, 70):  # more forms than are kept
        functional.conv2d(values("float32", 1, 1, 1, width).cuda(), values("float32", 1, 1, 1, 2).cuda())
    x.copy_(x * 2)
    graph.replay()
    close(y, functional.conv2d(x.cpu(), w.cpu()), "float32")
    plans = cudnn.fake_cudnn_plans()
    torch.backends.cudnn.benchmark = False
    functional.conv2d(x, w)
    assert cudnn.fake_cudnn_plans() == plans


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        (5000, RuntimeError, "conv.*: computing a convolution: cuDNN returned CUDNN_STATUS_EXECUTION_FAILED"),
        (4004, torch.cuda.OutOfMemoryError, "DEVICE_ALLOCATION_FAILED"),
        (3000, NotImplementedError, "CUDNN_STATUS_NOT_SUPPORTED"),
    ],
)
def test_failures_of_a_known_plan(cudnn, status, error, text):
    x, w = images(size=7)
    run(x, w)
    cudnn.fake_cudnn_fail(status)
    with pytest.raises(error, match=text):
        functional.conv2d(x.cuda(), w.cuda())
    run(x, w)


def test_a_failed_execution_is_not_hidden_by_another_engine(cudnn):
    x, w = images(size=16)
    cudnn.fake_cudnn_fail(5000)
    with pytest.raises(RuntimeError, match="CUDNN_STATUS_EXECUTION_FAILED"):
        functional.conv2d(x.cuda(), w.cuda())


PROGRAM = """
import sys
import rushlight as torch
import rushlight_core as core
core.devices.load_backend(sys.argv[1])
x, w = torch.ones(1, 1, 4, 4, device="cuda"), torch.ones(1, 1, 2, 2, device="cuda")
try:
    torch.nn.functional.conv2d(x, w)
except RuntimeError as error:
    print(type(error).__name__, error)
torch.backends.cudnn.enabled = False
assert float(torch.nn.functional.conv2d(x, w).sum()) == 36.0
"""


def output(plugin: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, str(plugin)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_missing_library(plugin, tmp_path):
    alone = tmp_path / plugin.name
    shutil.copy(plugin, alone)
    text = output(alone)
    assert text.startswith("RuntimeError conv")
    assert "cuDNN cannot be used: the library was not found: libcudnn.so.9" in text
    assert "hint: pip install 'nvidia-cudnn-cu13>=9.19,<10'; or set backends.cudnn.enabled = False" in text


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"FAKE_CUDNN_VERSION": "91800"}, "the process has loaded version 9.18 of it, and 9.19 or newer"),
        ({"FAKE_CUDNN_VERSION": "100000"}, "the process has loaded version 10.0 of it"),
        (
            {"FAKE_CUDNN_CUDART": "12080"},
            "the process has loaded a build of it for CUDA 12, and one for CUDA 13 is needed",
        ),
    ],
)
def test_other_versions_of_the_library(plugin, environment, text):
    assert f"cuDNN cannot be used: {text}" in output(plugin, **environment)
