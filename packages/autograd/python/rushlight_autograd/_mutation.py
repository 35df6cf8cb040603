"""Copy saved tensors before they are changed in place: `allow_mutation_on_saved_tensors`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from rushlight_autograd._C import _pop_saved_hooks, _push_saved_hooks
from rushlight_core import Tensor, no_grad
from rushlight_core.seams.stages import go_on, provide_stage, stage_off, stage_on, withdraw_stage

__all__ = ["allow_mutation_on_saved_tensors"]


class _Saved:
    """A saved tensor: the original tensor until the first write to its memory, and a copy afterwards."""

    __slots__ = ("__weakref__", "tensor", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.version = tensor._version

    def copy(self) -> None:
        # If the memory was written without a report, the value is lost; the engine's version check raises the error.
        if self.tensor._version == self.version:
            self.tensor = self.tensor.clone()
            self.version = self.tensor._version


class SavedBook:
    """The tensors that nodes saved inside one `with` block, grouped by storage."""

    def __init__(self) -> None:
        self.entries: dict[int, WeakSet[_Saved]] = {}
        self.writing: dict[int, int] = {}  # versions of the storages that an operator is about to write
        self.copies = 0

    def pack(self, tensor: Tensor) -> _Saved:
        saved = _Saved(tensor)
        memory = _memory(tensor)
        if self.writing.get(memory) == tensor._version:
            saved.copy()  # this operator saves its argument, and is about to write it
        else:
            self.entries.setdefault(memory, WeakSet()).add(saved)
        return saved

    @staticmethod
    def unpack(saved: _Saved) -> Tensor:
        if saved.tensor._version != saved.version:
            raise RuntimeError(
                "backward(): a tensor that was saved inside allow_mutation_on_saved_tensors was changed after the block,"
                " or by code that is not an operator\nhint: change a clone() of the tensor"
            )
        return saved.tensor

    def before_write(self, tensor: Tensor) -> None:
        for saved in self.entries.pop(_memory(tensor), ()):
            saved.copy()
            self.copies += 1


_active: threading.local = threading.local()
_lock = threading.Lock()
# The number of open blocks in all threads. The first one attaches the provider, and the last one detaches it.
_blocks = 0


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[SavedBook]:
    """See :func:`rushlight_autograd.graph.allow_mutation_on_saved_tensors`.

    Raises:
        RuntimeError: `allow_mutation_on_saved_tensors` blocks are nested.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with allow_mutation_on_saved_tensors():
        ...     y = x.exp()
        ...     z = y.sum()
        ...     _ = y.detach().zero_()
        ...     z.backward()
        >>> x.grad
        tensor([2.7183, 2.7183])
    """
    if getattr(_active, "book", None) is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    _count_block(1)
    book = _active.book = SavedBook()
    _push_saved_hooks(book.pack, book.unpack)
    try:
        with stage_on("tracer"):
            yield book
    finally:
        _pop_saved_hooks()
        _active.book = None
        _count_block(-1)


def _count_block(change: int) -> None:
    global _blocks
    with _lock:
        if _blocks == 0:
            provide_stage("tracer", _before_operator)
        _blocks += change
        if _blocks == 0:
            withdraw_stage("tracer")


def _before_operator(name: str, arguments: tuple[Any, ...], rest: int) -> Any:
    """Copy saved tensors that the operator is about to change in place.

    The operator's schema marks the arguments that the operator changes.
    """
    book: SavedBook | None = getattr(_active, "book", None)
    positions = _written(name)
    if book is None or not positions:
        return go_on(rest, name, *arguments)
    written = [t for i in positions for t in _tensors(arguments[i])]
    with stage_off("tracer"), no_grad():
        for tensor in written:
            book.before_write(tensor)
    before = book.writing
    book.writing = before | {_memory(t): t._version for t in written}
    try:
        return go_on(rest, name, *arguments)
    finally:
        book.writing = before


def _tensors(argument: Any) -> list[Tensor]:
    if isinstance(argument, Tensor):
        return [argument]
    return [t for t in argument if isinstance(t, Tensor)] if isinstance(argument, (list, tuple)) else []


_positions: dict[str, tuple[int, ...]] = {}


def _written(name: str) -> tuple[int, ...]:
    """Return the indices of the arguments that an operator changes in place."""
    if not _positions:
        from rushlight_core import _C

        for operator, schema in _C._operators():
            _positions[operator] = _marked(schema)
    return _positions[name]


def _marked(schema: str) -> tuple[int, ...]:
    """Return the positions of the arguments to be modified: (0,) for `add_(Tensor(a!) input, ...)`."""
    inside = schema[schema.index("(") + 1 : schema.rindex(" -> ")]
    found, depth, start, number = [], 0, 0, 0
    parts: list[str] = []
    for i, c in enumerate(inside):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(inside[start:i])
            start = i + 1
    parts.append(inside[start:])
    for part in parts:
        if part.strip() == "*":
            continue
        if "!" in part.split("=")[0]:
            found.append(number)
        number += 1
    return tuple(found)
