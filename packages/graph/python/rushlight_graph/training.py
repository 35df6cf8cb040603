"""Save and restore the gradients and the states of optimizers that a captured training step changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import getattr_static
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_graph._C import Program

State = list[tuple[str, str, Tensor]]
#: For each tensor whose `.grad` a capture has set or removed: its name, and whether it had a gradient before and
#: after.
Changes = list[tuple[str, bool, bool]]


class Optimizers:
    """The optimizers among the attributes of a module and its submodules, by path.

    An optimizer is recognized by its attributes `param_groups` and `state`, which PyTorch's optimizers have.
    """

    def __init__(self, module: Any) -> None:
        self._names = {id(tensor): name for name, tensor in module.named_parameters()}
        self._found: dict[str, Any] = {}
        self._seen: set[int] = set()
        for path, part in module.named_modules():
            for name, value in vars(part).items():
                self._look(f"{path}.{name}" if path else name, value)

    def _look(self, path: str, value: Any) -> None:
        if id(value) in self._seen:
            return
        if type(value) in (list, tuple, dict):
            self._seen.add(id(value))
        if type(value) in (list, tuple):
            for i, item in enumerate(value):
                self._look(f"{path}.{i}", item)
        elif type(value) is dict:
            for key, item in value.items():
                self._look(f"{path}.{key}", item)
        elif isinstance(getattr_static(value, "param_groups", None), list) and isinstance(
            getattr_static(value, "state", None), Mapping
        ):
            self._seen.add(id(value))
            self._found.setdefault(path, value)

    def __bool__(self) -> bool:
        return bool(self._found)

    def state(self) -> State:
        """Return the optimizers' tensors: parameters that the module does not have, and the state of each parameter."""
        state: State = []
        for path, optimizer in self._found.items():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if id(param) not in self._names:
                        self._names[id(param)] = f"{path}.params.{len(state)}"
                        state.append((self._names[id(param)], "parameter", param))
        for path, optimizer in self._found.items():
            for param, own in optimizer.state.items():
                if isinstance(own, dict):
                    state += [
                        (f"{path}.{key}.{self._name(param)}", "buffer", value)
                        for key, value in own.items()
                        if isinstance(value, Tensor) and not value.is_sparse
                    ]
        return state

    def _name(self, param: Any) -> str:
        return self._names.get(id(param), "?")

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Restore the optimizers at the end of the block, in which a training step is captured.

        Raise NotImplementedError if the capture changed an optimizer in a way that a program cannot represent."""
        before = {path: _snapshot(optimizer) for path, optimizer in self._found.items()}
        try:
            yield
        except BaseException:
            self._restore(before)
            raise
        problems = [
            self._changed(path, *before[path][1:], optimizer) for path, optimizer in self._found.items()
        ]
        self._restore(before)
        for problem in problems:
            if problem:
                raise NotImplementedError(problem)

    def _restore(self, before: Mapping[str, tuple[dict[str, Any], Any, Any]]) -> None:
        for path, optimizer in self._found.items():
            attributes, state, groups = before[path]
            optimizer.__dict__.clear()
            optimizer.__dict__.update(attributes)
            for param in [param for param in optimizer.state if param not in state]:
                del optimizer.state[param]
            for param, kept in state.items():
                own = optimizer.state[param]
                if isinstance(own, dict):
                    own.clear()
                    own.update(kept)
            for group, settings in zip(optimizer.param_groups, groups, strict=True):
                group.clear()
                group.update(settings)

    def _changed(self, path: str, state: Any, groups: Any, optimizer: Any) -> str | None:
        if len(groups) != len(optimizer.param_groups):
            return f"export: '{path}' adds or removes parameter groups, which a program cannot represent"
        for group, settings in zip(optimizer.param_groups, groups, strict=True):
            for key, value in group.items():
                if key not in settings or not _same(settings[key], value):
                    return (
                        f"export: '{path}' changes its setting '{key}', but settings are constants of a program\n"
                        "hint: export one program for each value of the setting"
                    )
        for param, own in optimizer.state.items():
            name = self._name(param)
            kept = state.get(param)
            if not kept or not isinstance(own, dict):
                return (
                    f"export: '{path}' creates its state for '{name}' in each run of the program\n"
                    "hint: call step() once before the export"
                )
            for key, value in own.items():
                if key not in kept or not _same(kept[key], value):
                    return (
                        f"export: '{path}' replaces '{key}' in its state for '{name}', which cannot be captured\n"
                        "hint: use an optimizer that changes the tensors of its state in place"
                    )
        return None


def _snapshot(optimizer: Any) -> tuple[dict[str, Any], dict[Any, Any], list[dict[str, Any]]]:
    state = {key: dict(own) if isinstance(own, dict) else own for key, own in optimizer.state.items()}
    return dict(vars(optimizer)), state, [dict(group) for group in optimizer.param_groups]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


def with_gradients(state: State) -> State:
    """Return the state, followed by the dense gradients of its leaves as buffers named `<name>.grad`."""
    return state + [
        (f"{name}.grad", "buffer", tensor.grad)
        for name, _, tensor in state
        if tensor.is_leaf and tensor.grad is not None and not tensor.grad.is_sparse
    ]


def capture_from_run_to_run(record: Callable[[], tuple[Program, Changes]], state: State) -> Program:
    """Capture a program that can be run repeatedly, because its runs neither add nor remove gradients.

    The first run of a training step may create gradients that did not exist before. The program represents a later run,
    which finds these gradients and adds to them. The program stores zeros as the initial values of these gradients, because
    adding to zeros gives the same result as creating a gradient.
    """
    leaves = {name: tensor for name, _, tensor in state}
    before = {name: tensor.grad for name, tensor in leaves.items() if tensor.is_leaf}
    try:
        for _ in range(3):
            program, changes = record()
            moved = [(name, after) for name, was, after in changes if was != after]
            if not moved:
                return program
            used = {name for name, _, _ in program.constants()}
            for name, after in moved:
                if not after and f"{name}.grad" in used:
                    raise NotImplementedError(
                        f"export: '{name}' has a gradient, which only the first run of the program would use\n"
                        "hint: call zero_grad() before the export"
                    )
                leaves[name].grad = core.zeros_like(leaves[name]).detach() if after else None
        raise NotImplementedError(
            f"export: '{moved[0][0]}' gets a gradient only in some runs, which a program cannot represent"
        )
    finally:
        for name, gradient in before.items():
            leaves[name].grad = gradient
