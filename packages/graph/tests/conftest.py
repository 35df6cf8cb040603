"""Fixtures for the tests: modules that do not need rushlight-nn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
from rushlight_graph import ExportedProgram, Graph

sys.path.insert(0, str(Path(__file__).parent))  # the folder of control_flow_cases and program_files


class Module:
    """The part of a module's interface that `export` uses."""

    def __init__(self, **members: Any) -> None:
        self.members = members
        self.before: list[Callable[..., Any]] = []
        self.after: list[Callable[..., Any]] = []
        self.buffer_names: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["members"][name]
        except KeyError:
            raise AttributeError(name) from None

    def _all(self, prefix: str = "") -> Iterator[tuple[str, Module, str, Any]]:
        for name, member in self.members.items():
            if isinstance(member, Module):
                yield from member._all(f"{prefix}{name}.")
            else:
                yield prefix + name, self, name, member

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        return ((path, t) for path, owner, name, t in self._all() if name not in owner.buffer_names)

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        return ((path, t) for path, owner, name, t in self._all() if name in owner.buffer_names)

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        yield prefix, self
        for name, member in self.members.items():
            if isinstance(member, Module):
                yield from member.named_modules(f"{prefix}.{name}" if prefix else name)

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        return Handle(self.before, hook)

    def register_forward_hook(self, hook: Callable[..., Any], *, always_call: bool) -> Handle:
        assert always_call
        return Handle(self.after, hook)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for hook in self.before:
            hook(self, args)
        try:
            return self.forward(*args, **kwargs)
        finally:
            for hook in self.after:
                hook(self, args, None)


class Handle:
    def __init__(self, hooks: list[Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self.hooks, self.hook = hooks, hook
        hooks.append(hook)

    def remove(self) -> None:
        self.hooks.remove(self.hook)


class Linear(Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(weight=core.randn(outputs, inputs), bias=core.randn(outputs))

    def forward(self, x: Any) -> Any:
        return core.linear(x, self.weight, self.bias)


class Counting(Module):
    """A model with state: it counts its calls and stores a sum."""

    def __init__(self) -> None:
        super().__init__(first=Linear(3, 4), second=Linear(4, 2), calls=core.zeros((), dtype=core.int64))
        self.buffer_names = {"calls"}

    def forward(self, x: Any, scale: float = 1.0) -> Any:
        self.calls.add_(1)
        return {"y": self.second(self.first(x).relu_()) * scale, "calls": self.calls + 0}


@pytest.fixture(autouse=True)
def _texts_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every program that a test exports or loads, check that the text of its graph can be parsed."""
    make = ExportedProgram.__init__

    def check(self: ExportedProgram, program: Any, example_inputs: Any = None) -> None:
        make(self, program, example_inputs)
        assert str(Graph.parse(program.text())) == program.text()

    monkeypatch.setattr(ExportedProgram, "__init__", check)


@pytest.fixture
def linear() -> Linear:
    core.manual_seed(0)
    return Linear(3, 2)


@pytest.fixture
def counting() -> Counting:
    core.manual_seed(0)
    return Counting()


@pytest.fixture
def function_module() -> Callable[..., Module]:
    """Return a function that makes a module from a function and tensors."""

    def make(function: Callable[..., Any], buffers: tuple[str, ...] = (), **members: Any) -> Module:
        module = Module(**members)
        module.buffer_names = set(buffers)
        module.forward = function  # type: ignore[attr-defined]
        return module

    return make
