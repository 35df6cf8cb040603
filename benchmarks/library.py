"""A library under test: a module with PyTorch's API, the names that a row's code can use, and its number of threads."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np

from .harness import Clock, Loop, data, result_expression
from .rows import Row


class Library:
    """A module with PyTorch's API, which prepares rows."""

    def __init__(self, name: str, threads: int = 1, label: str | None = None) -> None:
        self.name = name
        self.label = label or name
        self.module: ModuleType = importlib.import_module(name)
        self.module.set_num_threads(threads)
        actual = self.module.get_num_threads()
        if actual != threads:
            raise RuntimeError(f"{name}.set_num_threads({threads}): the library still uses {actual} threads")

    @property
    def version(self) -> str:
        return str(self.module.__version__)

    def fill(self, model: Any) -> None:
        """Give every parameter the same seeded values in every library, small enough for any depth."""
        with self.module.no_grad():
            for index, parameter in enumerate(model.parameters()):
                values = (data(*parameter.shape, seed=index) - np.float32(1)) * np.float32(0.5)
                parameter.copy_(self.module.tensor(values))

    def namespace(self, setup: str) -> dict[str, Any]:
        """Return the namespace of a statement after its setup has run."""
        scope: dict[str, Any] = {"torch": self.module, "np": np, "data": data, "fill": self.fill}
        exec(compile(setup, "<setup>", "exec"), scope)
        return scope

    def result(self, row: Row, setup: str) -> Any:
        """Return the value that must agree between libraries, computed from new operands; None if there is none."""
        expression = result_expression(row)
        return None if expression is None else eval(expression, self.namespace(setup))

    def subject(self, row: Row, setup: str, clock: Clock) -> Loop:
        return Loop(self.label, row.statement, self.namespace(setup), clock)


def numpy_namespace(row: Row) -> dict[str, Any]:
    """Return the namespace of a row's NumPy statement after its setup has run."""
    scope: dict[str, Any] = {"np": np, "data": data}
    exec(compile(row.numpy_setup, "<numpy setup>", "exec"), scope)
    return scope
