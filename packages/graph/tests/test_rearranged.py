"""Filters that convolutions cache in oneDNN's layout as long as a program that was read from a file exists."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

import rushlight_core as core
from rushlight_graph import Dim, export, load, save
from rushlight_graph._C import Capture, Program

# This convolution is neither pointwise nor depthwise nor for minimal filtering, so oneDNN computes it with blocked
# filters.
IMAGES = core.sin(core.arange(2 * 16 * 12 * 12.0)).reshape(2, 16, 12, 12)
FILTERS = core.cos(core.arange(24 * 16 * 5 * 5.0)).reshape(24, 16, 5, 5)


def convolve(x: Any, filters: Any) -> Any:
    return core.conv2d(x, filters, stride=2), core.conv2d(x, filters, padding=2)


def equal(got: Any, wanted: Any) -> bool:
    return all(core.equal(a, b) for a, b in zip(got, wanted, strict=True))


def test_results_are_eagers_in_every_call(function_module: Any, tmp_path: Path) -> None:
    module = function_module(lambda x: convolve(x, FILTERS))
    save(export(module, (IMAGES,), dynamic_shapes=({0: Dim("n", min=1)},)), tmp_path / "m")
    run = load(tmp_path / "m").module()
    for x in (IMAGES, IMAGES, IMAGES[:1], core.cat([IMAGES] * 9), IMAGES * 2):
        assert equal(run(x), convolve(x, FILTERS))


def test_the_next_program_at_an_address_has_filters_of_its_own(function_module: Any, tmp_path: Path) -> None:
    addresses = set()
    for number in range(8):
        filters = FILTERS + number
        save(export(function_module(lambda x, f=filters: convolve(x, f)), (IMAGES,)), tmp_path / str(number))
    for number in range(8):
        program = load(tmp_path / str(number))
        (tensor,) = program.constants.values()
        addresses.add(tensor.data_ptr())
        assert equal(program.module()(IMAGES), convolve(IMAGES, FILTERS + number))
        del program, tensor
    assert len(addresses) < 8  # otherwise the test shows nothing


def test_a_filter_outlives_its_program(function_module: Any, tmp_path: Path) -> None:
    save(export(function_module(lambda x: convolve(x, FILTERS)), (IMAGES,)), tmp_path / "m")
    program = load(tmp_path / "m")
    (filters,) = program.constants.values()
    wanted = program.module()(IMAGES)
    del program
    assert equal(convolve(IMAGES, filters), wanted)


def test_filters_that_a_program_writes_are_read_anew() -> None:
    filters = FILTERS.clone()
    region = Capture([("x", "constant", IMAGES)], [("filters", "buffer", filters)])
    region.start()
    try:
        filters.mul_(2)
        results = convolve(IMAGES, filters)
    finally:
        region.stop()
    program = Program.from_bytes(region.finish(list(results), {}).to_bytes())
    for factor in (2, 4, 8):
        assert equal(program.run([IMAGES]), convolve(IMAGES, FILTERS * factor))


def test_threads_share_filters(function_module: Any, tmp_path: Path) -> None:
    save(export(function_module(lambda x: convolve(x, FILTERS)), (IMAGES,)), tmp_path / "m")
    run, wanted, same = load(tmp_path / "m").module(), convolve(IMAGES, FILTERS), []
    threads = [Thread(target=lambda: same.append(equal(run(IMAGES), wanted))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * 4
