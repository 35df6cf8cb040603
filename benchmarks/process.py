"""Fresh processes: each measurement starts from a clean interpreter and sends back its results one by one.

A library that crashes ends its process only, not the run: the caller receives the signal and continues.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import traceback
from collections.abc import Callable, Iterator
from typing import Any

Connection = multiprocessing.connection.Connection
Send = Callable[[Any], None]


class CrashedError(RuntimeError):
    """Raised if the measuring process ended before it had finished."""


def stream(function: Callable[..., None], *arguments: Any, has_children: bool = False) -> Iterator[Any]:
    """Run function(send, *arguments) in a fresh interpreter and yield the values that it sends.

    function must be importable by name. has_children: whether it starts processes, which it must then end itself. An
    exception in it is raised here as RuntimeError with its traceback in the text; a termination by a signal or an exit is
    raised as `CrashedError`.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_main, args=(function, sender, arguments), daemon=not has_children)
    child.start()
    sender.close()
    try:
        while True:
            try:
                kind, value = receiver.recv()
            except EOFError:
                child.join()
                raise CrashedError(f"the process ended with exit code {child.exitcode}") from None
            if kind == "done":
                break
            if kind == "error":
                raise RuntimeError(value)
            yield value
    finally:
        receiver.close()
        child.join(timeout=5)
        if child.is_alive():
            child.kill()
            child.join()


def fresh(function: Callable[..., None], *arguments: Any, has_children: bool = False) -> Any:
    """Return the one value that function(send, *arguments) sends from a fresh interpreter."""
    (value,) = stream(function, *arguments, has_children=has_children)
    return value


def _main(function: Callable[..., None], sender: Connection, arguments: tuple[Any, ...]) -> None:
    try:
        function(lambda value: sender.send(("value", value)), *arguments)
        sender.send(("done", None))
    except BrokenPipeError:
        pass  # the parent has ended, so no process receives the results
    except Exception:
        sender.send(("error", traceback.format_exc()))
