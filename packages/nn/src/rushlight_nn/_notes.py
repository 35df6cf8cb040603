"""Notes that name the module in which an error was raised: `in Net.layers.0 (Linear)`."""

from __future__ import annotations

import weakref

from ._typing import Any


class PathNote(str):
    """A note on an exception, with the path to the module that raised it.

    The path begins at the outermost module through which the exception has propagated so far. The note stores this module,
    so that an enclosing module can prepend its own name. A pickled exception contains only the text of the
    note.
    """

    __slots__ = ("failed", "outermost", "path")
    outermost: weakref.ref[Any]
    path: str
    failed: str

    def __new__(cls, outermost: Any, path: str, failed: str) -> PathNote:
        name = type(outermost).__name__
        note = super().__new__(cls, f"in {name}.{path} ({failed})" if path else f"in {name}")
        note.outermost = weakref.ref(outermost)
        note.path = path
        note.failed = failed
        return note

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()


def add_path(module: Any, error: BaseException) -> None:
    """Prepend the name of `module` to the path in the note on `error`, or add a note if `error` has no such note yet.

    This function is called for each module through which the error propagates, from the innermost to the outermost.
    """
    notes: list[str] = getattr(error, "__notes__", None) or []
    for index in range(len(notes) - 1, -1, -1):
        note = notes[index]
        if not isinstance(note, PathNote):
            continue
        inner = note.outermost()
        if inner is module:  # a module that calls itself, or super().__call__
            return
        step = _path_between(module, inner)
        if step is not None:
            notes[index] = PathNote(module, f"{step}.{note.path}" if note.path else step, note.failed)
            return
        break
    error.add_note(PathNote(module, "", type(module).__name__))


def _path_between(module: Any, inner: Any) -> str | None:
    """Return the dotted name of the submodule `inner` in `module`, or None if `inner` is no submodule."""
    if inner is None:
        return None
    for name, child in module.named_modules():
        if child is inner:
            return name
    return None
