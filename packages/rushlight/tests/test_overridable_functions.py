"""Law: public functions written in Python first call `__torch_function__` of their arguments, as operators do."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import pytest

import rushlight as torch
from rushlight_core.overrides import overridable

F = torch.nn.functional
MODULES = [torch, F, torch.nn.init, torch.linalg, torch.fft, torch.special, torch.masked]
# Functions that do not call it in PyTorch either. They only write to a tensor, or read one for another purpose.
NOT_ASKED = {"range", "set_rng_state", "cond"}


class Duck:
    """An object that is not a tensor. A function that is called with it returns the arguments of the hook."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func, types, args, kwargs


def _written_in_python(module: ModuleType) -> Iterator[Any]:
    for name in getattr(module, "__all__", None) or dir(module):
        value = getattr(module, name, None)
        if not name.startswith("_") and isinstance(value, (FunctionType, overridable)):
            yield pytest.param(value, id=f"{module.__name__}.{name}")


def _tensor_parameters(function: Any) -> list[inspect.Parameter]:
    parameters = inspect.signature(function).parameters.values()
    return [p for p in parameters if "Tensor" in str(p.annotation)]


FUNCTIONS = [
    param
    for module in MODULES
    for param in _written_in_python(module)
    if _tensor_parameters(param.values[0]) and param.values[0].__name__ not in NOT_ASKED
]


def _call(function: Any, chosen: inspect.Parameter, value: Any) -> Any:
    """Call a function with `value` for one parameter, and None for other required parameters."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            args += [value] if p.name == chosen.name else []
        elif p.name != chosen.name and (p.default is not p.empty or p.kind is p.VAR_KEYWORD):
            continue
        elif p.kind is p.POSITIONAL_OR_KEYWORD and len(args) == len(kwargs) == 0 and p.name == chosen.name:
            args.append(value)
        else:
            kwargs[p.name] = value if p.name == chosen.name else None
    return function(*args, **kwargs)


def test_there_are_such_functions() -> None:
    assert len(FUNCTIONS) > 130


@pytest.mark.parametrize("function", FUNCTIONS)
def test_classes_of_arguments_are_asked(function: Any) -> None:
    for parameter in _tensor_parameters(function):
        for given in (Duck(), [Duck()]):
            func, types, args, kwargs = _call(function, parameter, given)
            assert func is function, parameter
            assert types == (Duck,)
            assert given in (*args, *kwargs.values())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_looks_like_a_function(function: Any) -> None:
    assert isinstance(function, overridable)
    plain = inspect.unwrap(function)
    assert (function.__name__, function.__module__) == (plain.__name__, plain.__module__)
    assert function.__doc__ == plain.__doc__
    assert function.__reduce__() == plain.__qualname__


def test_einsum() -> None:
    func, _, args, _ = torch.einsum("i", Duck())
    assert func is torch.einsum
    assert args[0] == "i"


class Seeing(torch.Tensor):
    calls: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_subclass_sees_one_call_and_results_are_of_its_class() -> None:
    x = torch.ones(1, 1, 4).as_subclass(Seeing)
    Seeing.calls.clear()
    wide = F.interpolate(x, scale_factor=2)
    loss = F.mse_loss(torch.ones(1, 1, 8), wide)
    filled = torch.nn.init.zeros_(x)
    assert Seeing.calls == [F.interpolate, F.mse_loss, torch.nn.init.zeros_]
    assert [type(t) for t in (wide, loss)] == [Seeing, Seeing]
    assert filled is x
    with torch._C.DisableTorchFunctionSubclass():
        F.mse_loss(x, x)
    assert len(Seeing.calls) == 3


def test_a_layer_hands_its_input_to_the_function() -> None:
    x = torch.ones(2).as_subclass(Seeing)
    Seeing.calls.clear()
    torch.nn.MSELoss()(x, x)
    assert Seeing.calls == [F.mse_loss]


def test_who_returns_not_implemented_is_passed_over() -> None:
    class Shy:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    with pytest.raises(TypeError, match=r"no implementation found for mse_loss .*Shy"):
        F.mse_loss(Shy(), torch.ones(2))
    assert F.mse_loss(Shy(), target=Duck())[0] is F.mse_loss
