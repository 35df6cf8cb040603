"""`record_function` as a decorator."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from ._C import record_function, recording

P = ParamSpec("P")
R = TypeVar("R")


def decorate(span: record_function, function: Callable[P, R]) -> Callable[P, R]:
    """Return a wrapper of `function` that records each call under the span's name."""
    name, text = span.name, span.args

    @wraps(function)
    def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
        if not recording():
            return function(*args, **kwargs)
        # Each call has a separate span, because calls may run on several threads at the same time.
        with record_function(name, text):
            return function(*args, **kwargs)

    return recorded
