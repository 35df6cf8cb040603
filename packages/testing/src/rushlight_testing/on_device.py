"""A pytest plug-in that runs tests on another device: `pytest -p rushlight_testing.on_device --device toy tests`.

New tensors are created on the device unless the test specifies a device. Arrays are copied to the device. Methods that
only the host supports, such as `numpy`, are called on a copy on the host. `--every N` runs one in N tests, always the same
ones. `--plugin` loads the plug-in that provides the device. With `--missing-kernels skip`, tests of operators
for which the device has no kernels are skipped. Tests that do not apply to the device, such as tests of host
memory, are always skipped: `EXCEPTIONS` lists them with the reasons.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core import Tensor, _settings, devices
from rushlight_testing import operators
from rushlight_testing.native import compile_plugin
from rushlight_testing.sampling import is_chosen

# Patterns of tests ("file::name"; a "[" is literal), and why they do not apply to another device.
_HERE = "the lengths of sequences and the split indices are on the CPU, as in PyTorch"
_DTYPES = "a CPU kernel rejects a dtype only when it runs, and the device runs kernels asynchronously"
_UNASKED = "values are checked before the call only on the CPU, since this would block on another device"
_LATE = "an index that is out of range in a batch is rejected asynchronously"
_OF_THE_CPU = "it requires the CPU, or memory that the host can address"
_IN_ORDER = "only on the CPU, results keep the order of dimensions in memory for any strides"
EXCEPTIONS: dict[str, str] = {
    "test_examples.py::*": "the text of a tensor contains its device",
    "test_*::*[*.data*]": _HERE,
    "test_oracles.py::test_laws[tensor_split.tensor]": _HERE,
    "test_recurrent.py::test_pack*": _HERE,
    "test_reference_values.py::test_values[functions]": _HERE,
    "test_reference_values.py::test_values[layers]": _HERE,
    "test_edges.py::*[tensor_split]": _HERE,
    "test_edges.py::test_what_is_said_of_a_new_tensor_is_said_of_out[*]": _OF_THE_CPU,
    "test_laws_dtypes.py::test_operators_take_the_declared_dtypes[cpu]": _OF_THE_CPU,
    "test_bad_input.py::test_*": _OF_THE_CPU,
    "test_device_threads.py::*": "it attaches its own toy device",
    "test_branches.py::*": "a backward pass on one device has one thread",
    "test_laws_dtypes.py::test_operators_take_the_declared_dtypes[*]": _DTYPES,
    **{
        f"test_forms.py::test_in_place_is_out_of_place[{op}-*": _DTYPES
        for op in ("addbmm", "addmm", "baddbmm", "addmv")
    },
    "test_derivatives.py::test_formula_of_complex_numbers[*max_pool*]": _DTYPES,
    "test_derivatives.py::test_formula*[cpu-*": "its result is on the CPU",
    "test_laws_fresh_memory.py::test_what_is_not_written_is_noticed": "the device fills new memory itself",
    "test_laws.py::test_a_write_to_a_view_of_a_result_is_recorded[gather]": _LATE,
    "test_laws.py::test_a_write_to_a_view_of_a_result_is_recorded[scatter*]": _LATE,
    **{
        f"test_laws_shape_only.py::test_meta_tells_what_comes[{op}]": _IN_ORDER
        for op in ("flip", "fliplr", "flipud", "rot90", "_dropout")
    },
    "test_channels_last.py::test_results_have_the_layout_of_the_entry[flip]": _IN_ORDER,
    "test_channels_last.py::test_dropout_keeps_the_same_elements": _IN_ORDER,
    "test_masking.py::test_the_indices_of_a_dimension_are_contiguous": "only the CPU stores the indices by columns",
    "test_laws_random.py::*": "the generator has advanced when a device reports a bad value",
    "test_laws_out_of_memory.py::*": "a device kernel allocates when results may have been written",
    "test_vmap.py::test_a_batched_tensor_shows_its_level": "a printed tensor names its device",
    "test_library.py::test_writing_an_argument": "the array of a device's tensor is a copy",
    "test_vmap.py::test_operator[_embedding_bag-*": "an invalid variant is rejected asynchronously",
    "test_scatter.py::test_a_bad_index_writes_nothing*": "the write is counted before the device checks the index",
    "test_scatter.py::test_indices_out_of_range_are_named_by*": _UNASKED,
    "test_oracles.py::test_errors[masked_fill]": _UNASKED,
    "test_oracles.py::test_errors[view.dtype]": _UNASKED,
    "test_fourier.py::test_istft_refuses_windows_with_gaps": _UNASKED,
    "test_resizing.py::test_refusals_leave_everything_as_it_was": _OF_THE_CPU,
    "test_parameter.py::test_repr": "a printed tensor names its device",
    "test_distribution_vectors.py::test_low_rank_normal_vectors_are_normal_vectors": "it adds an array to a tensor",
    "test_serialization.py::test_*crafted_document*": _OF_THE_CPU,
    "test_serialization.py::test_map_location": _OF_THE_CPU,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="toy", help="the device on which tensors are made")
    parser.addoption("--every", type=int, default=1, metavar="N", help="run one test in N")
    parser.addoption("--plugin", type=Path, help="a plug-in to load first")
    parser.addoption(
        "--missing-kernels",
        choices=("fail", "skip"),
        default="fail",
        help="what to do with a test if a kernel is missing",
    )


def pytest_configure(config: pytest.Config) -> None:
    device = config.getoption("--device")
    if device.partition(":")[0] == "toy":
        core.linalg.qr(core.ones(2, 2))  # imports LAPACK here, not in the device's thread, which holds a lock
        folder = Path(tempfile.mkdtemp(prefix="toy-device-"))
        devices.load_backend(compile_plugin("toy_device", folder, ["-DRUSHLIGHT_TOY_MEMORY_MIB=4096"]))
    elif plugin := config.getoption("--plugin"):
        devices.load_backend(plugin)
    core.set_default_device(device)
    for what in ("conv", "rnn"):  # TF32 has fewer digits than the results that tests expect
        _settings.set_fp32_precision(what, "ieee")
    for name in ("numpy", "__array__"):
        _of_a_copy(name)
    _then_moved("from_numpy", device)
    _wait_where_errors_are_expected(device, config.getoption("--missing-kernels") == "skip")


def _of_a_copy(name: str) -> None:
    """Replace the method `name` of Tensor, so that a tensor on another device is first copied to the host."""
    original = getattr(Tensor, name)

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        there = self.device.type not in ("cpu", "meta")
        return original(self.detach().cpu() if there else self, *args, **kwargs)

    setattr(Tensor, name, method)


def _then_moved(name: str, device: str) -> None:
    """Make the function `name` return copies on `device` instead of tensors that share memory with an array."""
    original = getattr(core, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs).to(device)

    setattr(core, name, function)


def _wait_where_errors_are_expected(device: str, skip_missing: bool) -> None:
    """Synchronize the device after calls of operators in tests and at the end of `pytest.raises`.

    The device reports errors asynchronously, so without synchronization, an error would be raised too late.
    If `skip_missing` is true, also skip tests for which a kernel is missing, since they could mistake the
    error of the missing kernel for the error that they expect.
    """
    raises = pytest.raises

    def skip_if_missing(error: BaseException | None) -> None:
        if skip_missing and (text := _missing_kernel(error, device)):
            pytest.skip(text)

    class Raises:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._inner = raises(*args, **kwargs)

        def __enter__(self) -> Any:
            return self._inner.__enter__()

        def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
            skip_if_missing(error)
            if kind is None:
                try:
                    devices.synchronize(device)
                except Exception as late:
                    return self._inner.__exit__(type(late), late, late.__traceback__) or _raise(late)
            return self._inner.__exit__(kind, error, traceback)

    def expected(error: Any, *args: Any, **kwargs: Any) -> Any:
        # The older form, with a function and its arguments.
        return raises(error, *args, **kwargs) if args else Raises(error, **kwargs)

    pytest.raises = expected  # type: ignore[assignment]

    def waiting(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except NotImplementedError as error:
                skip_if_missing(error)
                raise
            finally:
                devices.synchronize(device)

        return call

    for name in ("call", "boxed", "inplace"):
        setattr(operators, name, waiting(getattr(operators, name)))


def _raise(error: BaseException) -> bool:
    raise error


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Skip a test that needs a missing kernel, if `--missing-kernels skip` is given."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if call.excinfo is None or item.config.getoption("--missing-kernels") != "skip":
        return
    if text := _missing_kernel(call.excinfo.value, item.config.getoption("--device")):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, f"Skipped: {text}")


def _missing_kernel(error: BaseException | None, device: str) -> str:
    """Return a description of the missing kernel that an error reports, or "" if it reports none."""
    text, kind = str(error), device.partition(":")[0]
    if not isinstance(error, NotImplementedError) or "no kernel" not in text or kind not in text:
        return ""
    return f"{kind} has no kernel for {text.partition(':')[0]}"


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Synchronize the device after a test, so that its errors are not reported in the next test."""
    with contextlib.suppress(Exception):
        devices.synchronize(item.config.getoption("--device"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    every = config.getoption("--every")
    chosen = [item for item in items if is_chosen(item, every)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen
    for item in items:
        name = f"{item.path.name}::{item.name}"
        for pattern, reason in EXCEPTIONS.items():
            if fnmatch.fnmatch(name, pattern.replace("[", "[[]")):
                item.add_marker(pytest.mark.skip(reason=reason))
