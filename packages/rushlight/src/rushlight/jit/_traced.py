"""Traced modules and functions, which run the original Python code in this process and are saved as programs."""

from __future__ import annotations

import copy
import functools
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from rushlight.jit._loaded import File, LoadedModule, ScriptModule
from rushlight_core import Tensor
from rushlight_graph import ExportedProgram, export
from rushlight_graph import save as save_program
from rushlight_graph.capture import capture
from rushlight_nn import Module

__all__ = [
    "ScriptFunction",
    "TopLevelTracedModule",
    "TracerWarning",
    "is_tracing",
    "save",
    "trace",
    "trace_module",
]

# Note [Traced modules]
# A trace records a program, which can be saved. In this process, the traced module runs the Python code of the
# original module, and shares its parameters and buffers. It therefore also works with other sizes, in training mode
# and after to(). Saving records the program again with the example inputs, so that the file has the parameters and
# the mode at that time.

_state = threading.local()


class TracerWarning(Warning):
    """Warning that a module was traced, but cannot be saved as a program.

    Example:
        >>> issubclass(torch.jit.TracerWarning, Warning)
        True
    """

    @staticmethod
    def ignore_lib_warnings() -> None:
        """No-op: tracing does not warn about libraries."""


def is_tracing() -> bool:
    """Return whether `trace` or `save` is capturing a program on this thread.

    Example:
        >>> torch.jit.is_tracing()
        False
    """
    return getattr(_state, "depth", 0) > 0


class _Recording:
    """A traced method with its example inputs."""

    def __init__(self, method: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.method, self.args, self.kwargs = method, args, dict(kwargs)

    def program(self, func: Any) -> ExportedProgram:
        _state.depth = getattr(_state, "depth", 0) + 1
        try:
            if self.method == "forward" and isinstance(func, Module):
                return export(func, self.args, self.kwargs)
            state: list[tuple[str, str, Tensor]] = []
            if isinstance(func, Module):
                state += [(name, "parameter", tensor) for name, tensor in func.named_parameters()]
                state += [(name, "buffer", tensor) for name, tensor in func.named_buffers()]
                func = getattr(func, self.method)
            return ExportedProgram(capture(func, self.args, self.kwargs, state), (self.args, self.kwargs))
        finally:
            _state.depth -= 1


class TopLevelTracedModule(ScriptModule):
    """A module that `trace` returns. The traced module calls the original module, and shares its state, submodules and mode.

    An attribute that the traced module lacks is looked up in the original module; AttributeError is raised if
    both modules lack the attribute.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> traced = torch.jit.trace(model, torch.ones(3, 2))
        >>> type(traced).__name__, traced.weight is model.weight
        ('TopLevelTracedModule', True)
    """

    def __init__(self, module: Module, recordings: list[_Recording]) -> None:
        super().__init__()
        object.__setattr__(self, "_original", module)
        object.__setattr__(self, "_recordings", recordings)
        for table in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            object.__setattr__(self, table, getattr(module, table))
        object.__setattr__(self, "training", module.training)

    def __getattr__(self, name: str) -> Any:
        for table in ("_parameters", "_buffers", "_modules"):
            entries = self.__dict__.get(table, {})
            if name in entries:
                return entries[name]
        if "_original" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.__dict__["_original"], name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._original(*args, **kwargs)

    def train(self, mode: bool = True) -> Any:
        self._original.train(mode)
        object.__setattr__(self, "training", mode)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> TopLevelTracedModule:
        made = TopLevelTracedModule(copy.deepcopy(self._original, memo), self._recordings)
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return TopLevelTracedModule, (self._original, self._recordings)

    def _check_tables(self) -> None:
        """Make sure that no other module shares the tables of the original module, which this module uses."""
        self._original._check_tables()

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self._original._apply(fn, recurse)
        return self

    @property
    def original_name(self) -> str:
        """The name of the class of the module that was traced."""
        return type(self._original).__name__

    @property
    def code(self) -> str:
        """The operators of the program as text."""
        return str(_program_of(self, "code"))

    graph = code

    def save(self, f: File, _extra_files: dict[str, str | bytes] | None = None) -> None:
        """Save as a program: see `jit.save`."""
        save(self, f, _extra_files)


class ScriptFunction:
    """A function that `trace` returns and that calls the original function.

    Example:
        >>> traced = torch.jit.trace(lambda x: x + 1, torch.ones(2))
        >>> type(traced).__name__, traced(torch.zeros(2))
        ('ScriptFunction', tensor([1., 1.]))
    """

    def __init__(self, function: Callable[..., Any], recordings: list[_Recording]) -> None:
        self._original, self._recordings = function, recordings
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._original(*args, **kwargs)

    @property
    def code(self) -> str:
        """The operators of the program as text."""
        return str(_program_of(self, "code"))

    graph = code

    def save(self, f: File, _extra_files: dict[str, str | bytes] | None = None) -> None:
        """Save as a program: see `jit.save`."""
        save(self, f, _extra_files)


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    *,
    example_kwarg_inputs: dict[str, Any] | None = None,
) -> Any:
    """Return `func` as a module or function that `save` can write as a program.

    In this process, calling the result runs the Python code of `func`, with inputs of any sizes and values.
    The saved program requires the dtypes and shapes of the example inputs; use `export(dynamic_shapes=...)`
    for sizes that change. If no program can be captured, for example because branches depend on values, a
    TracerWarning states the reason, and `save` raises an error.

    The program calls exactly the operators that the module calls, so the results of the program are not
    checked. The arguments `optimize`, `check_trace`, `check_inputs`, `check_tolerance` and `strict` have no
    effect.

    Args:
        func: a module, or a function.
        example_inputs: a tuple of positional arguments, or a single argument.
        example_kwarg_inputs: arguments by name, instead of `example_inputs`.

    Raises:
        TypeError: `func` is not callable.
        RuntimeError: neither or both of `example_inputs` and `example_kwarg_inputs` are passed.

    Example:
        >>> traced = torch.jit.trace(nn.ReLU(), torch.ones(3))
        >>> traced(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    if not callable(func):
        raise TypeError(f"jit.trace(func): needs a function or a module, got {type(func).__name__}")
    if (example_inputs is None) == (example_kwarg_inputs is None):
        raise RuntimeError("jit.trace(): needs either example_inputs or example_kwarg_inputs")
    if isinstance(func, (TopLevelTracedModule, ScriptFunction, LoadedModule)):
        return func
    return _traced(func, [_Recording("forward", _tuple(example_inputs), example_kwarg_inputs or {})])


def trace_module(
    mod: Module,
    inputs: dict[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
) -> Any:
    """Trace several methods of a module; see `trace`.

    A module with several traced methods cannot be saved, because a file contains only one program.

    Args:
        mod: the module.
        inputs: a dict that maps the name of each method to its example inputs.
        optimize, check_trace, check_inputs, check_tolerance, strict: have no effect.

    Raises:
        AttributeError: `mod` is not a module, `inputs` is not a dict, or a key of `inputs` is not the name of
            a method of `mod`.

    Example:
        >>> traced = torch.jit.trace_module(nn.ReLU(), {"forward": torch.ones(3)})
        >>> traced(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    if not isinstance(mod, Module):
        raise AttributeError(f"jit.trace_module(mod): needs a module, got {type(mod).__name__}")
    if not isinstance(inputs, dict):
        raise AttributeError(f"jit.trace_module(inputs): must be a dict, got {type(inputs).__name__}")
    for name in inputs:
        getattr(mod, name)  # raises AttributeError if there is no such method
    return _traced(mod, [_Recording(name, _tuple(given), {}) for name, given in inputs.items()])


def _tuple(inputs: Any) -> tuple[Any, ...]:
    if inputs is None:
        return ()
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def _traced(func: Any, recordings: list[_Recording]) -> Any:
    for recording in recordings:
        call = func if recording.method == "forward" else getattr(func, recording.method)
        try:
            recording.program(func)
        except (RuntimeError, TypeError, ValueError) as error:
            # If the function itself raises an error, raise that error instead of a warning.
            call(*recording.args, **recording.kwargs)
            name = getattr(func, "__name__", type(func).__name__)
            warnings.warn(
                f"jit.trace: {name} runs as Python, and cannot be saved:\n{error}",
                TracerWarning,
                stacklevel=3,
            )
    return (TopLevelTracedModule if isinstance(func, Module) else ScriptFunction)(func, recordings)


def _program_of(traced: Any, what: str) -> ExportedProgram:
    if len(traced._recordings) != 1:
        raise NotImplementedError(
            f"jit.{what}: {len(traced._recordings)} methods were traced, but a file contains one program\n"
            "hint: trace and save them one by one"
        )
    return traced._recordings[0].program(traced._original)


def save(m: Any, f: File, _extra_files: dict[str, str | bytes] | None = None) -> None:
    """Save a traced or loaded module or function as a program.

    The program is captured when `save` is called, with the example inputs and the current parameters and mode. The file
    contains no code; `load`, `export.load` and the command `rushlight-run` read it.

    Args:
        m: the result of `trace`, `trace_module` or `load`.
        f: a path or an open binary file.
        _extra_files: a dict from file names to contents (str, or bytes in UTF-8). `load` can return these
            contents.

    Raises:
        NotImplementedError: `m` was not traced, has several traced methods, or cannot be captured yet.
        RuntimeError: a branch of the module, or a conversion to a Python number, depends on the values of a tensor.

    Example:
        >>> torch.jit.save(torch.jit.trace(nn.ReLU(), torch.ones(3)), "relu.pt")
        >>> torch.export.load("relu.pt").module()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([0., 0., 1.])
    """
    texts = {
        name: text if isinstance(text, str) else text.decode() for name, text in (_extra_files or {}).items()
    }
    if isinstance(m, LoadedModule):
        program = m.program
    elif isinstance(m, (TopLevelTracedModule, ScriptFunction)):
        program = _program_of(m, "save")
    else:
        raise NotImplementedError(
            f"jit.save(m): {type(m).__name__} was not traced, and its source cannot be compiled\n"
            "hint: jit.trace(model, example_inputs) first; torch.save(model.state_dict(), f) saves the weights"
        )
    save_program(program, f, extra_files=texts)
