"""Fixtures for the tests: recordings that are built from rows, and core's hooks, called as autograd calls them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
import rushlight_profiler
from rushlight_core.seams.profiler import Argument, Event, Header
from rushlight_profiler import _C, Recording


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    yield
    assert not _C.recording(), "a test left a recording under way"


@pytest.fixture
def x() -> core.Tensor:
    return core.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


MakeRecording = Callable[..., Recording]


@pytest.fixture
def make_recording() -> MakeRecording:
    """Return a function that builds a Recording from rows (kind, name, begin, end, parent, fields).

    Times are in microseconds, and ids count from 1.
    """

    def make(*rows: tuple[Any, ...], duration: float | None = None, **header: Any) -> Recording:
        events = []
        for number, (kind, name, begin, end, parent, *fields) in enumerate(rows, 1):
            values: dict[str, Any] = {
                "kind": kind,
                "name": name,
                "overload": "",
                "thread": 1,
                "begin": round(begin * 1e3),
                "end": round(end * 1e3),
                "id": number if kind != "memory" else 0,
                "parent": parent,
                "sequence": 0,
                "nbytes": 0,
                "address": 0,
                "arguments": None,
                "stack": None,
            }
            values.update(fields[0] if fields else {})
            events.append(Event(**values))
        if duration is None:
            duration = max((event.end for event in events), default=0) / 1e3
        fields_of_header: dict[str, Any] = {
            "process": os.getpid(),
            "start_time": 1_700_000_000_000_000_000,
            "duration": round(duration * 1e3),
            "threads": {1: "MainThread"},
            "dropped": 0,
            "allocated": 0,
            "metadata": {},
        }
        fields_of_header.update(header)
        return Recording(Header(**fields_of_header), events)

    return make


@pytest.fixture
def f32() -> Callable[..., Argument]:
    return lambda *shape: Argument("float32", shape)


class Hooks:
    """The functions of rushlight/hooks.h, by which tests report events as autograd's engine does."""

    class _Observer(ctypes.Structure):
        _fields_ = [
            ("node_made", ctypes.CFUNCTYPE(None, ctypes.c_uint64)),
            ("node_begin", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint64)),
            ("node_end", ctypes.CFUNCTYPE(None, ctypes.c_uint64)),
            ("allocated", ctypes.c_void_p),
            ("released", ctypes.c_void_p),
        ]

    def __init__(self) -> None:
        folder = next(path for path in core.__path__ if (Path(path) / "lib" / "librushlight.so").exists())
        self.library = ctypes.CDLL(str(Path(folder) / "lib" / "librushlight.so"))

    @property
    def observer(self) -> Any:
        """The pointer to the observer; None if there is no observer."""
        address = ctypes.c_void_p.in_dll(self.library, "_ZN9rushlight6detail8observerE").value
        return None if address is None else self._Observer.from_address(address)


@pytest.fixture(scope="session")
def hooks() -> Hooks:
    return Hooks()


@pytest.fixture(scope="session")
def python_path() -> str:
    """Return the PYTHONPATH for subprocesses: the folders of the packages under test, however they were installed."""
    folders = [str(Path(module.__path__[0]).parent) for module in (core, rushlight_profiler)]
    return os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")])
