"""The table of faults, and the modules that a fault's program may use."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any


@dataclass(frozen=True)
class Fault:
    """A program with a fault.

    `run` gets the modules of a library. It raises the library's error, or returns whether the library continued with correct
    results. `names` is a regular expression for the error: a text that names the fault."""

    group: str
    name: str
    run: Callable[[Any], bool | None]
    names: str


NO_ERROR = "(?!)"  # matches no text; the library must continue with right results

FAULTS: dict[str, Fault] = {}


def fault(group: str, name: str, names: str = NO_ERROR) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a program to the table."""

    def add(run: Callable[..., Any]) -> Callable[..., Any]:
        key = f"{group}: {name}"
        assert key not in FAULTS, key
        FAULTS[key] = Fault(group, name, run, names)
        return run

    return add


def library(name: str) -> SimpleNamespace:
    """Import a library, and return the modules that programs use."""
    root = importlib.import_module(name)
    find = importlib.import_module
    return SimpleNamespace(
        name=name,
        torch=root,
        data=find(f"{name}.utils.data"),
        mp=find(f"{name}.multiprocessing"),
        dist=find(f"{name}.distributed"),
        nn=root.nn,
        backend="shm" if name == "rushlight" else "gloo",
        report={},
    )


def load() -> dict[str, Fault]:
    """Return all faults by their names."""
    for module in ("loader", "processes", "ranks"):
        importlib.import_module(f"faults.{module}")
    return FAULTS
