"""Custom operators with a derivative: `custom_op`, as in PyTorch's torch.library."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

import rushlight_core as core
from rushlight_autograd._C import _increment_version
from rushlight_autograd.function import Function
from rushlight_core import Tensor, is_grad_enabled

__all__ = [
    "CustomOpDef", "custom_op", "get_op", "register_autograd", "register_fake", "register_kernel", "register_vmap",
]  # fmt: skip

_ops: dict[str, CustomOpDef] = {}
# Functions for shapes that were registered before their operator was created. Some libraries do this because their
# compiled part may be missing.
_early_shapes: dict[str, Callable[..., Any]] = {}
# A function that is called in place of an operator's kernel, to count operations. Its arguments are the operator, the
# kernel, and the positional and keyword arguments.
_around: Callable[[CustomOpDef, Callable[..., Any], list[Any], dict[str, Any]], Any] | None = None


class CustomOpDef:
    """An operator that :func:`custom_op` has created, which is called like a function.

    Raises:
        RuntimeError: a result shares memory with an argument, an argument that the operator changes in place
            requires grad, or the operator has no derivative (raised by a backward pass through the operator).
        NotImplementedError: there is no kernel for the device.
        TypeError: a result is not a tensor, a number or None.
        ValueError: the function's signature is not supported for an operator.

    Example:
        >>> @torch.library.custom_op("docs::twice", mutates_args=())
        ... def twice(x: torch.Tensor) -> torch.Tensor:
        ...     return torch.from_numpy(2 * x.numpy())
        >>> twice(torch.ones(2))
        tensor([2., 2.])
    """

    def __init__(
        self,
        name: str,
        fn: Callable[..., Any],
        mutates_args: Iterable[str],
        device_types: Sequence[str] | None,
    ) -> None:
        self._name = name
        self._signature = inspect.signature(fn)
        for parameter in self._signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise ValueError(
                    f"custom_op({name}): *{parameter.name} is not supported in an operator's signature"
                )
        self._mutates = tuple(mutates_args)
        for argument in self._mutates:
            if argument not in self._signature.parameters:
                raise ValueError(
                    f"custom_op({name}): mutates_args names {argument!r}, which is not an argument"
                )
        kinds: Sequence[str | None] = device_types or [None]
        self._kernels: dict[str | None, Callable[..., Any]] = dict.fromkeys(kinds, fn)
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self._function = self._make_function()
        self.__name__: str = name.rpartition("::")[2]
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = tuple(bound.arguments.values())
        for name in self._mutates:
            written = bound.arguments[name]
            if isinstance(written, Tensor) and written.requires_grad and is_grad_enabled():
                raise RuntimeError(
                    f"{self._name}: argument '{name}' requires grad, but the operator changes it in place\n"
                    "hint: such operators have no derivative; call it under no_grad(), or pass a clone()"
                )
        try:
            return self._function.apply(*values)
        finally:
            for name in self._mutates:
                _for_each_tensor(bound.arguments[name], _increment_version)

    # --- registration ---

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register the derivative of the operator.

        `backward(ctx, *grads)` receives a gradient for each result and returns one gradient, or None, for each
        argument. `setup_context(ctx, inputs, output)` runs after the operator and stores the values that `backward`
        needs, with `ctx.save_for_backward` and attributes of `ctx`. If `setup_context` has a parameter
        `keyword_only_inputs`, the keyword-only arguments are passed to this parameter.
        """
        if self._mutates:
            raise RuntimeError(
                f"{self._name}: an operator that changes its arguments in place cannot have a derivative"
            )
        self._backward, self._setup_context = backward, setup_context

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Register a function that returns the results for arguments on the device "meta".

        `fn` takes the arguments of the operator and returns tensors of the right shape and dtype, without
        values.
        """
        self._fake = fn
        return fn

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /
    ) -> Any:
        """Register an implementation for the given device types, or for all types if `device_types` is None. May be used as
        a decorator."""

        def register(kernel: Callable[..., Any]) -> Callable[..., Any]:
            kinds = [device_types] if device_types is None or isinstance(device_types, str) else device_types
            self._kernels.update(dict.fromkeys(kinds, kernel))
            return kernel

        return register if fn is None else register(fn)

    def register_vmap(self, func: Callable[..., Any] | None = None, /) -> Any:
        """Register the operator's batching rule, which `vmap` calls. May be used as a decorator.

        `func(info, in_dims, *args, **kwargs)` is called once for all examples; `info.batch_size` is their
        number. For each positional argument, `in_dims` contains the dimension along which the examples lie,
        or None if the argument is the same for all examples. `func` returns a tuple of the output and the
        dimension of the output along which the examples lie. Without such a function, calls of the operator
        inside `vmap` raise a RuntimeError.
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            def vmap(info: Any, in_dims: tuple[Any, ...], *values: Any) -> Any:
                positional, named = self._arguments(values)
                return function(info, in_dims[: len(positional)], *positional, **named)

            self._function.vmap = staticmethod(vmap)  # type: ignore[method-assign]
            return function

        return register if func is None else register(func)

    # --- running ---

    def _arguments(self, values: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional arguments as a list, and the keyword-only arguments as a dict."""
        pairs = list(zip(self._signature.parameters.values(), values, strict=True))
        named = {p.name: v for p, v in pairs if p.kind is inspect.Parameter.KEYWORD_ONLY}
        return [v for p, v in pairs if p.kind is not inspect.Parameter.KEYWORD_ONLY], named

    def _run(self, values: tuple[Any, ...]) -> Any:
        core._C._check_untraced(f"{self._name}, an operator of library.custom_op,")
        positional, named = self._arguments(values)
        kernel = self._kernel(values)
        result = kernel(*positional, **named) if _around is None else _around(self, kernel, positional, named)
        given: list[Tensor] = []
        for value in values:
            _for_each_tensor(value, given.append)
        for i, made in enumerate(result if isinstance(result, (tuple, list)) else (result,)):
            if made is not None and not isinstance(made, (Tensor, int, float, bool)):
                raise TypeError(
                    f"{self._name}: result {i} must be a Tensor or a number, got {type(made).__name__}"
                )
            if isinstance(made, Tensor) and any(_share_memory(made, t) for t in given):
                raise RuntimeError(
                    f"{self._name}: result {i} shares the memory of an argument\n"
                    "hint: return a clone(), or change the argument in place and list its name in mutates_args"
                )
        return tuple(result) if isinstance(result, list) else result

    def _kernel(self, values: tuple[Any, ...]) -> Callable[..., Any]:
        devices: list[str] = []
        for value in values:
            _for_each_tensor(value, lambda t: devices.append(t.device.type))
        if "meta" in devices and "meta" not in self._kernels:
            if self._fake is None:
                raise NotImplementedError(
                    f"{self._name}: an argument is on the device 'meta', but the operator has no function "
                    f"for this device\nhint: register one with {self.__name__}.register_fake"
                )
            return self._fake
        kernel = self._kernels.get(devices[0] if devices else None) or self._kernels.get(None)
        if kernel is None:
            raise NotImplementedError(
                f"{self._name}: there is no kernel for {devices[0] if devices else 'a call without tensors'};"
                f" there are kernels for {', '.join(str(k) for k in self._kernels)}"
            )
        return kernel

    def _make_function(self) -> type[Function]:
        op = self

        def forward(*values: Any) -> Any:
            return op._run(values)

        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            if op._setup_context is None:
                return
            positional, named = op._arguments(inputs)
            given: dict[str, Any] = {"ctx": ctx, "inputs": tuple(positional), "output": output}
            if "keyword_only_inputs" in inspect.signature(op._setup_context).parameters:
                given["keyword_only_inputs"] = named
            op._setup_context(**given)

        def backward(ctx: Any, *grads: Any) -> Any:
            if op._backward is None:
                raise RuntimeError(
                    f"{op._name} has no derivative\nhint: register one with {op.__name__}.register_autograd(backward)"
                )
            return op._backward(ctx, *grads)

        name = "".join(part.capitalize() for part in re.split(r"\W+|_", self._name) if part)
        methods = {
            "forward": staticmethod(forward),
            "setup_context": staticmethod(setup_context),
            "backward": staticmethod(backward),
        }
        return type(name, (Function,), methods)


def _for_each_tensor(value: Any, function: Callable[[Tensor], Any]) -> None:
    for one in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(one, Tensor):
            function(one)


def _share_memory(a: Tensor, b: Tensor) -> bool:
    return a is b or (a.numel() > 0 and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() != 0)


@overload
def custom_op(
    name: str,
    fn: None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Callable[[Callable[..., Any]], CustomOpDef]: ...
@overload
def custom_op(
    name: str,
    fn: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> CustomOpDef: ...
def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Create an operator from a function of tensors and numbers. The function may use NumPy, ctypes or another library.

    Use as a decorator, or call with the function. Results must not share memory with arguments. The operator has no
    derivative until `register_autograd` registers a derivative. A second operator of the same name replaces the first.

    Args:
        name: "namespace::name".
        fn: the function, whose annotations define the types of the arguments.
        mutates_args: names of the arguments that the function changes in place; () for none.
        device_types: types of devices for which the function is the kernel; None for all.
        schema, tags: accepted for compatibility; the function's signature is used.

    Raises:
        ValueError: the name or the function's signature is not valid for an operator.
        RuntimeError: a result shares memory with an argument (when the operator is called).

    Example:
        >>> import numpy as np
        >>> @torch.library.custom_op("docs::sinc", mutates_args=())
        ... def sinc(x: torch.Tensor) -> torch.Tensor:
        ...     return torch.from_numpy(np.sinc(x.numpy()))
        >>> sinc(torch.tensor([0.0, 0.5]))
        tensor([1.0000, 0.6366])
    """
    if not re.fullmatch(r"\w+::\w+", name):
        raise ValueError(f"custom_op(name): must be 'namespace::name', not {name!r}")
    mutated = (mutates_args,) if isinstance(mutates_args, str) else tuple(mutates_args)
    kinds = [device_types] if isinstance(device_types, str) else device_types

    def make(function: Callable[..., Any]) -> CustomOpDef:
        made = _ops[name] = CustomOpDef(name, function, mutated, kinds)
        if name in _early_shapes:
            made.register_fake(_early_shapes.pop(name))
        return made

    return make if fn is None else make(fn)


def get_op(op: str | CustomOpDef) -> CustomOpDef:
    """Return the custom operator with a given name.

    Args:
        op: "namespace::name", or the operator itself.

    Raises:
        RuntimeError: there is no such operator.

    Example:
        >>> @torch.library.custom_op("docs::thrice", mutates_args=())
        ... def thrice(x: torch.Tensor) -> torch.Tensor:
        ...     return 3 * x
        >>> get_op("docs::thrice") is thrice
        True
    """
    if isinstance(op, CustomOpDef):
        return op
    if op not in _ops:
        raise RuntimeError(f"there is no operator {op!r}\nhint: custom_op({op!r}, mutates_args=()) makes one")
    return _ops[op]


def register_autograd(
    op: str | CustomOpDef, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
) -> None:
    """Register the derivative of a custom operator; see `CustomOpDef.register_autograd`.

    Args:
        op: the operator, or its name.
        backward: a function of the context and the gradients of the results that returns the gradients of the
            arguments.
        setup_context: a function that saves the values that `backward` needs. Its parameters are the context,
            the arguments and the result.

    Example:
        >>> @torch.library.custom_op("docs::half", mutates_args=())
        ... def half(x: torch.Tensor) -> torch.Tensor:
        ...     return x / 2
        >>> torch.library.register_autograd("docs::half", lambda ctx, grad: grad / 2)
        >>> x = torch.ones(1, requires_grad=True)
        >>> torch.autograd.grad(half(x), x)
        (tensor([0.5000]),)
    """
    get_op(op).register_autograd(backward, setup_context=setup_context)


def register_fake(op: str | CustomOpDef, fn: Callable[..., Any] | None = None, /) -> Any:
    """Register a function that computes the shapes and dtypes of a custom operator's results without their values.

    Args:
        op: the operator, or its name. If there is no such operator yet, the function is registered when the operator is
            created.
        fn: the function; without it a decorator is returned.

    Example:
        >>> @torch.library.custom_op("docs::double", mutates_args=())
        ... def double(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 2
        >>> @torch.library.register_fake("docs::double")
        ... def _(x):
        ...     return torch.empty_like(x)
        >>> double(torch.empty(2, 3, device="meta")).shape
        torch.Size([2, 3])
    """
    if isinstance(op, str) and op not in _ops:

        def keep(function: Callable[..., Any]) -> Callable[..., Any]:
            _early_shapes[op] = function
            return function

        return keep if fn is None else keep(fn)
    return get_op(op).register_fake if fn is None else get_op(op).register_fake(fn)


def register_kernel(
    op: str | CustomOpDef, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /
) -> Any:
    """Register a kernel of a custom operator for some types of devices.

    Args:
        op: the operator, or its name.
        device_types: names of the types, or None for all.
        fn: the function; without it a decorator is returned.

    Example:
        >>> @torch.library.custom_op("docs::negate", mutates_args=(), device_types="cuda")
        ... def negate(x: torch.Tensor) -> torch.Tensor:
        ...     return -x
        >>> @torch.library.register_kernel("docs::negate", "cpu")
        ... def _(x):
        ...     return 0 - x
        >>> negate(torch.ones(1))
        tensor([-1.])
    """
    return get_op(op).register_kernel(device_types, fn)


def register_vmap(op: str | CustomOpDef, func: Callable[..., Any] | None = None, /) -> Any:
    """Register the batching rule of a custom operator for `vmap`; see `CustomOpDef.register_vmap`.

    Args:
        op: the operator, or its name.
        func: the function; without it a decorator is returned.

    Example:
        >>> @torch.library.custom_op("docs::reversed", mutates_args=())
        ... def reversed(x: torch.Tensor) -> torch.Tensor:
        ...     return torch.from_numpy(x.numpy()[::-1].copy())
        >>> @torch.library.register_vmap("docs::reversed")
        ... def _(info, in_dims, x):
        ...     return x.movedim(in_dims[0], 0).flip(1), 0
        >>> torch.vmap(reversed)(torch.tensor([[1, 2], [3, 4]]))
        tensor([[2, 1],
                [4, 3]])
    """
    return get_op(op).register_vmap(func)
