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


def test_a_copy_out_of_the_meta_device_says_so_in_pytorchs_words() -> None:
    nothing = rl.zeros(2, device="meta")
    for copy in (nothing.cpu, lambda: rl.zeros(2).copy_(nothing), lambda: nothing.to("cpu", rl.float64)):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            copy()
