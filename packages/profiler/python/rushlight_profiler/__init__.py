"""A profiler that shows where a program that uses rushlight-core spends time and memory.

`profile()` records operators, backward nodes, named spans and memory. The results can be printed as a table,
exported as a Chrome trace or as an HTML page, and summarized as suggestions for changes. While nothing is recorded,
operators run as if this package were not installed.
"""

from __future__ import annotations

import rushlight_core as _core  # noqa: F401  first, because it loads librushlight, which this package needs

from ._C import record_function

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from .advice import Advice, AdviceList
    from .events import EventList, FunctionEvent, FunctionEventAvg, Interval
    from .recording import Recording
    from .session import (
        ProfilerAction,
        ProfilerActivity,
        profile,
        schedule,
        supported_activities,
        tensorboard_trace_handler,
        trace_handler,
    )
    from .sinks.json_lines import load

_HOMES = {
    "Advice": "advice",
    "AdviceList": "advice",
    "EventList": "events",
    "FunctionEvent": "events",
    "FunctionEventAvg": "events",
    "Interval": "events",
    "ProfilerAction": "session",
    "ProfilerActivity": "session",
    "Recording": "recording",
    "load": "sinks.json_lines",
    "profile": "session",
    "schedule": "session",
    "supported_activities": "session",
    "tensorboard_trace_handler": "session",
    "trace_handler": "session",
}

__all__ = [
    "Advice",
    "AdviceList",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "ProfilerAction",
    "ProfilerActivity",
    "Recording",
    "load",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
    "trace_handler",
]


def __getattr__(name: str) -> object:
    # All names except record_function, which programs use even without a profile, are loaded on first use.
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name == "__version__":
        from importlib.metadata import version

        return version("rushlight-profiler")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
