"""Operators that return new memory do so even if no element has to be moved."""

from __future__ import annotations

import pytest

import rushlight_core as rl


@pytest.mark.parametrize(
    "copying",
    [
        lambda x: x.repeat(1, 1),
        lambda x: x[:1].repeat(1, 3, 1),
        lambda x: x[:, :1].repeat(1, 4),
        lambda x: rl.tile(x, (1,)),
        lambda x: x.roll(0),
        lambda x: x.roll((3, 4), (0, 1)),
        lambda x: x.repeat_interleave(1, 0),
        lambda x: x[:1].repeat_interleave(3, 0),
        lambda x: rl.diff(x, n=0),
        lambda x: rl.pixel_shuffle(x[None], 1),
        lambda x: rl.pixel_unshuffle(x[None], 1),
    ],
)
def test_what_moves_nothing_is_a_copy_too(copying: object) -> None:
    x = rl.arange(12.0).reshape(3, 4)
    y = copying(x)  # type: ignore[operator]
    y.add_(1)
    assert x.tolist() == rl.arange(12.0).reshape(3, 4).tolist()
    assert y.is_contiguous()


@pytest.mark.parametrize(
    ("number", "dtype", "copied"),
    [
        (5, rl.float32, 5.0),
        (2.5, rl.int64, 2),
        (300, rl.uint8, 44),
        (True, rl.float64, 1.0),
        (1j, rl.complex64, 1j),
    ],
)
def test_numbers_are_copied_as_the_elements_of_a_tensor(
    number: complex, dtype: rl.dtype, copied: complex
) -> None:
    x = rl.zeros(2, dtype=dtype)
    assert x.copy_(number) is x
    assert x.tolist() == [copied] * 2


def test_a_copy_out_of_the_meta_device_says_so_in_pytorchs_words() -> None:
    nothing = rl.zeros(2, device="meta")
    for copy in (nothing.cpu, lambda: rl.zeros(2).copy_(nothing), lambda: nothing.to("cpu", rl.float64)):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            copy()
