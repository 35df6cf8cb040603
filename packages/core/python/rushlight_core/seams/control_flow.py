"""The interface between `cond`, `while_loop` and `scan` and the packages that capture programs.

`cond` and `while_loop` choose the next operators by the values of tensors, and `scan` repeats its operators
for each slice. A captured program would contain only the operators that ran for the example inputs, so a
package that captures programs installs a recorder. While the recorder records, `cond`, `while_loop` and
`scan` pass their functions to the recorder instead of calling them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rushlight_core import Tensor

    Function = Callable[[list[Tensor]], Sequence[Tensor]]
else:
    Function = Callable


class Recorder(Protocol):
    """Records calls of `cond`, `while_loop` and `scan` while a program is captured.

    The functions that are passed to a recorder take and return lists of tensors. The recorder calls each function once.
    """

    def is_recording(self) -> bool:
        """Return whether a program is being captured in the calling thread."""

    def follows_sizes(self) -> bool:
        """Return whether sizes may differ between runs of the program. In that case, no Python loop may depend on a size."""

    def cond(self, pred: Tensor, true_fn: Function, false_fn: Function) -> list[Tensor]:
        """Record both branches by calling `true_fn` and `false_fn` with an empty list of tensors.

        Return tensors that represent the results.

        Raises:
            RuntimeError: the branches return results of different types.
        """

    def while_loop(self, cond_fn: Function, body_fn: Function, carried: Sequence[Tensor]) -> list[Tensor]:
        """Record a loop, and return tensors that represent the carried values after the last iteration.

        These tensors have the dtypes and shapes of `carried`.

        Raises:
            RuntimeError: the results of `body_fn` have other types than `carried`.
        """

    def scan(self, combine_fn: Function, init: Sequence[Tensor], xs: Sequence[Tensor]) -> list[Tensor]:
        """Record a loop over slices of `xs` along the first dimension; `combine_fn` takes the carried value and the slices.

        Return the carried tensors after the last iteration, followed by the stacked results.

        Raises:
            RuntimeError: the carried values have other types than `init`.
        """


_recorder: Recorder | None = None


def set_recorder(recorder: Recorder | None) -> None:
    """Install the recorder of the process; None removes it."""
    global _recorder
    _recorder = recorder


def active_recorder() -> Recorder | None:
    """Return the recorder if it records the calling thread, else None.

    Example:
        >>> active_recorder() is None  # no program is being captured
        True
    """
    return _recorder if _recorder is not None and _recorder.is_recording() else None
