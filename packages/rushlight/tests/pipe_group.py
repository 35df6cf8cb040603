"""A group of processes over pipes: the second implementation of the seam `rushlight_core.seams.collectives`.

Every rank sends its values to rank 0, which combines them and sends the result to all ranks. Calls are synchronous.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from multiprocessing.connection import Connection, Pipe
from pickle import dumps, loads
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor

REDUCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "SUM": core.add, "AVG": core.add, "PRODUCT": core.mul, "MIN": core.minimum, "MAX": core.maximum,
}  # fmt: skip


class Ended:
    """The work handle of a collective that has ended."""

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


class PipeGroup:
    """A rank's membership in a group. Rank 0 has a pipe to each other rank, and each other rank has one to rank 0."""

    def __init__(self, rank: int, size: int, pipes: Sequence[Connection]) -> None:
        self._rank = rank
        self._size = size
        self._pipes = pipes
        self._broken = ""

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size

    def reduce_tensors(self, tensors: Sequence[Tensor], op: str = "SUM", label: str = "") -> Ended:
        def combine(parts: list[list[Tensor]]) -> list[Tensor]:
            sums = [reduce(REDUCTIONS[op], column) for column in zip(*parts, strict=True)]
            return [total / self._size for total in sums] if op == "AVG" else sums

        self._write(tensors, self._exchange(f"reduce {op} {label}", list(tensors), combine))
        return Ended()

    def broadcast_tensors(self, tensors: Sequence[Tensor], root: int = 0, label: str = "") -> Ended:
        parts = self._exchange(f"broadcast {root} {label}", list(tensors), lambda parts: parts[root])
        self._write(tensors, parts)
        return Ended()

    def broadcast_object(self, value: Any, root: int = 0, label: str = "") -> Any:
        return self._exchange(f"object {root} {label}", value, lambda parts: parts[root])

    def abort(self, why: str) -> None:
        self._broken = self._broken or why
        for pipe in self._pipes:
            pipe.send_bytes(dumps((None, why)))

    def _write(self, tensors: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        with core.no_grad():
            for tensor, value in zip(tensors, values, strict=True):
                tensor.copy_(value)

    def _exchange(self, what: str, mine: Any, combine: Callable[[list[Any]], Any]) -> Any:
        """Return on every rank the result of `combine` for the values of all ranks."""
        if self._broken:
            raise RuntimeError(self._broken)
        if self._rank:
            self._pipes[0].send_bytes(dumps((what, mine)))
            said, value = loads(self._pipes[0].recv_bytes())
        else:
            received = [(what, mine), *(loads(pipe.recv_bytes()) for pipe in self._pipes)]
            said, value = None, next((value for said, value in received if said is None), "")
            if not value and len({text for text, _ in received}) > 1:
                value = f"ranks disagree: {[text for text, _ in received]}"
            if not value:
                said, value = what, combine([part for _, part in received])
            for pipe in self._pipes:
                pipe.send_bytes(dumps((said, value)))
        if said is None:
            self._broken = value
            raise RuntimeError(value)
        return value


def make_groups(size: int) -> list[Callable[[], PipeGroup]]:
    """Return a function for each rank that creates its `PipeGroup` in a process that is forked from this one."""
    ends = [Pipe() for _ in range(size - 1)]
    root = [ours for ours, _ in ends]
    return [
        lambda: PipeGroup(0, size, root),
        *(lambda i=i: PipeGroup(i + 1, size, [ends[i][1]]) for i in range(size - 1)),
    ]
