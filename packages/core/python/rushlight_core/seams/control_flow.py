"""The interface between control flow on values and the packages that capture programs.

`cond`, `while_loop` and `scan` read values to choose what runs next, which a captured program cannot express.
A package that captures programs installs a recorder: while it records, the functions pass their parts to the recorder
instead of running them.
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
    """A recorder of control flow.

    The functions passed to it take and return lists of tensors of any shapes, and each function is called once.
    """

    def is_recording(self) -> bool:
        """Return whether the calling thread's program is being captured."""

    def follows_sizes(self) -> bool:
        """Return whether sizes of the program may change from run to run, so that no Python loop may depend on a size."""

    def cond(self, pred: Tensor, true_fn: Function, false_fn: Function) -> list[Tensor]:
        """Record both branches, which take an empty list, and return tensors with the dtypes and shapes of their results.

        Raises:
            RuntimeError: the branches return other types.
        """

    def while_loop(self, cond_fn: Function, body_fn: Function, carried: Sequence[Tensor]) -> list[Tensor]:
        """Record a loop, and return tensors of the dtypes and shapes of `carried`.

        Raises:
            RuntimeError: `body_fn` returns other types.
        """

    def scan(self, combine_fn: Function, init: Sequence[Tensor], xs: Sequence[Tensor]) -> list[Tensor]:
        """Record a loop over slices along the first dimension of `xs`; `combine_fn` takes the carry and the slices.

        Return the last carried tensors and the further results, stacked.

        Raises:
            RuntimeError: the carried value has other types than `init`.
        """


_recorder: Recorder | None = None


def set_recorder(recorder: Recorder | None) -> None:
    """Install the recorder of the process; None removes it."""
    global _recorder
    _recorder = recorder


def active_recorder() -> Recorder | None:
    """Return the recorder, if it records the calling thread.

    Example:
        >>> active_recorder() is None  # no program is being captured
        True
    """
    return _recorder if _recorder is not None and _recorder.is_recording() else None
