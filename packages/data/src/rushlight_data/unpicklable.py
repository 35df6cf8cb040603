"""Find the attribute of a dataset that cannot be pickled."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator
from types import MethodType
from typing import Any

_DEPTH = 20


def explain(error: BaseException, **roots: Any) -> None:
    """Add a note to a pickling error. The note names the innermost attribute that cannot be pickled."""
    for name, root in roots.items():
        found = _find(root, name, set(), _DEPTH)
        if found is not None:
            path, value = found
            error.add_note(
                f"DataLoader: {path} = {value!r:.200} cannot be pickled, but this start method requires it\n"
                "Define functions and classes at the top level of a module, or create the object in "
                "worker_init_fn."
            )
            return


def _find(obj: Any, path: str, seen: set[int], depth: int) -> tuple[str, Any] | None:
    if id(obj) in seen or _can_be_pickled(obj):
        return None
    seen.add(id(obj))
    if depth:
        for suffix, part in _parts(obj):
            found = _find(part, path + suffix, seen, depth - 1)
            if found is not None:
                return found
    return path, obj


class _ProcessStart:
    """A placeholder for a process that is being started. Locks and queues can be pickled only while a process starts."""

    def DupFd(self, fd: int) -> int:
        return fd

    def duplicate_for_child(self, fd: int) -> int:
        return fd


def _can_be_pickled(obj: Any) -> bool:
    from multiprocessing.context import set_spawning_popen  # already imported if workers are processes
    from multiprocessing.reduction import ForkingPickler

    set_spawning_popen(_ProcessStart())  # type: ignore[arg-type]
    try:
        ForkingPickler(io.BytesIO()).dump(obj)
    except Exception:
        return False
    finally:
        set_spawning_popen(None)
    return True


def _parts(obj: Any) -> Iterator[tuple[str, Any]]:
    """Yield a pair (suffix, part) for each part of an object that its pickle contains, such as (".name", object.name)."""
    if isinstance(obj, MethodType):
        yield ".__self__", obj.__self__
        return
    if isinstance(obj, functools.partial):
        yield ".func", obj.func
        yield from ((f".args[{i}]", value) for i, value in enumerate(obj.args))
        yield from ((f".keywords[{key!r}]", value) for key, value in obj.keywords.items())
        return
    if isinstance(obj, (list, tuple)):
        yield from ((f"[{i}]", value) for i, value in enumerate(obj))
    elif isinstance(obj, (set, frozenset)):
        yield from ((" (an item)", value) for value in obj)
    elif isinstance(obj, dict):
        yield from ((f"[{key!r}]", value) for key, value in obj.items())
    try:
        reduced = obj.__reduce_ex__(4)
    except Exception:
        return
    if isinstance(reduced, tuple) and len(reduced) > 2:
        state = reduced[2]
        # The state of a class with slots is a pair of dicts.
        for values in state if isinstance(state, tuple) else (state,):
            if isinstance(values, dict):
                yield from ((f".{key}", value) for key, value in values.items())
