"""Record calls of `cond`, `while_loop` and `scan` of rushlight_core as nodes of the captured program."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight_core import Tensor
from rushlight_core.seams.control_flow import Function, set_recorder
from rushlight_graph import _C, dynamic


class Recorder:
    """Records calls of `cond`, `while_loop` and `scan` as nodes while the calling thread captures a program."""

    def is_recording(self) -> bool:
        """Return whether a capture is in progress on this thread."""
        return _C.is_capturing()

    def follows_sizes(self) -> bool:
        """Return whether the program is captured several times, with different sizes."""
        return dynamic.captures_sizes()

    def cond(self, pred: Tensor, true_fn: Function, false_fn: Function) -> list[Tensor]:
        """Record a conditional, and call each branch once to record its operators."""
        return _C.capture_cond(pred, true_fn, false_fn)

    def while_loop(self, cond_fn: Function, body_fn: Function, carried: Sequence[Tensor]) -> list[Tensor]:
        """Record a loop, and call its condition and its body once to record their operators."""
        return _C.capture_while_loop(cond_fn, body_fn, carried)

    def scan(self, combine_fn: Function, init: Sequence[Tensor], xs: Sequence[Tensor]) -> list[Tensor]:
        """Record a scan, and call `combine_fn` once to record its operators."""
        return _C.capture_scan(combine_fn, init, xs)


set_recorder(Recorder())
