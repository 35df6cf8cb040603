"""Fresh processes: each measurement starts from a clean interpreter and streams back what it finds.

A library that crashes takes its process with it, not the run: the caller learns the signal and goes on.
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
    """The measuring process ended before it was done."""


def stream(function: Callable[..., None], *arguments: Any, has_children: bool = False) -> Iterator[Any]:
    """Runs function(send, *arguments) in a fresh interpreter and yields what it sends.

    function must be importable by name. has_children: whether it starts processes, which it then has to end
    itself. An exception in it is raised here as RuntimeError with its traceback in the text; a death by signal
    or exit as `CrashedError`.
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
    """The one value that function(send, *arguments) sends from a fresh interpreter."""
    (value,) = stream(function, *arguments, has_children=has_children)
    return value


def _main(function: Callable[..., None], sender: Connection, arguments: tuple[Any, ...]) -> None:
    try:
        function(lambda value: sender.send(("value", value)), *arguments)
        sender.send(("done", None))
    except BrokenPipeError:
        pass  # the parent went away; nobody is left to tell
    except Exception:
        sender.send(("error", traceback.format_exc()))
