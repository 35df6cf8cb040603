"""Hooks of modules: functions called before and after `forward`, and in the backward pass."""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections.abc import Callable

import rushlight_core as core
from rushlight_core import Tensor

from ._typing import Any


class RemovableHandle:
    """A handle that removes a registered hook.

    `remove()` removes the hook. In a `with` statement, the hook is removed at the end of the block.

    Example:
        >>> layer = nn.ReLU()
        >>> with layer.register_forward_hook(lambda module, args, output: print("called")):
        ...     _ = layer(torch.zeros(1))
        called
        >>> _ = layer(torch.zeros(1))
    """

    _ids = itertools.count()

    def __init__(self, hooks: dict[int, Any], extra: tuple[dict[int, Any], ...] = ()) -> None:
        self.id: int = next(RemovableHandle._ids)
        self._tables = [weakref.ref(table) for table in (hooks, *extra)]

    def remove(self) -> None:
        """Remove the hook. Do nothing if the hook has been removed already."""
        for reference in self._tables:
            table = reference()
            if table is not None:
                table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()

    def __getstate__(self) -> tuple[Any, ...]:
        return self.id, [reference() for reference in self._tables]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.id = state[0]
        self._tables = [weakref.ref(HookTable() if table is None else table) for table in state[1]]
        # New ids must differ from the ids of hooks that were unpickled.
        RemovableHandle._ids = itertools.count(max(next(RemovableHandle._ids), self.id + 1))


class HookTable(dict[Any, Any]):
    """A dictionary from ids to hooks, in the order of the calls. Unlike a dict, this class supports weak references."""

    __slots__ = ("__weakref__",)

    def add(self, hook: Any, prepend: bool = False, extra: tuple[HookTable, ...] = ()) -> RemovableHandle:
        """Add `hook` at the beginning if `prepend` is set, otherwise at the end.

        Each table in `extra` marks certain hooks, such as those that take keyword arguments: the hook's id is
        added to it as a key.
        """
        handle = RemovableHandle(self, extra)
        self[handle.id] = hook
        if prepend:
            for key in [key for key in self if key != handle.id]:
                self[key] = self.pop(key)
        for table in extra:
            table[handle.id] = True
        return handle


# The tables of a module without hooks. Tables are created when the first hook is registered, because most modules
# have no hooks, and creating a module is faster without ten empty dictionaries.
class _NoHooks(HookTable):
    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError(
            "the table of hooks cannot be changed directly\nhint: call a method such as register_forward_hook"
        )


NO_HOOKS = _NoHooks()


class _GlobalHooks(HookTable):
    """A table of hooks that are called for every module. If all these tables are empty, a call skips them."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        Hooks._hooked = True

    def pop(self, key: Any, *default: Any) -> Any:
        value = super().pop(key, *default)
        Hooks._hooked = any(_GLOBAL_TABLES)
        return value


class _GlobalBackwardHooks(_GlobalHooks):
    __slots__ = ("full",)

    def __init__(self) -> None:
        super().__init__()
        self.full: bool | None = None  # whether the registered hooks are full backward hooks

    def add_kind(self, hook: Any, full: bool) -> RemovableHandle:
        self.full = _one_kind(self.full if self else None, full, "all modules")
        return self.add(hook)


_global_forward_pre_hooks = _GlobalHooks()
_global_forward_hooks = _GlobalHooks()
_global_forward_hooks_with_kwargs = HookTable()
_global_forward_hooks_always_called = HookTable()
_global_backward_pre_hooks = _GlobalHooks()
_global_backward_hooks = _GlobalBackwardHooks()
_GLOBAL_TABLES = (
    _global_forward_pre_hooks,
    _global_forward_hooks,
    _global_backward_pre_hooks,
    _global_backward_hooks,
)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register `hook(module, args)`, called before `forward` of every module and before the module's own hooks.

    Args:
        hook: the function. A return value other than None replaces the positional arguments.

    Returns:
        a handle whose `remove()` removes the hook.

    Example:
        >>> from rushlight.nn.modules.module import register_module_forward_pre_hook
        >>> with register_module_forward_pre_hook(lambda module, args: print(type(module).__name__)):
        ...     _ = nn.Sequential(nn.ReLU(), nn.Tanh())(torch.zeros(1))
        Sequential
        ReLU
        Tanh
    """
    return _global_forward_pre_hooks.add(hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Register `hook(module, args, output)`, called after `forward` of every module and before the module's own hooks.

    Args:
        hook: the function. A return value other than None replaces the output.
        with_kwargs: whether to call the hook as ``hook(module, args, kwargs, output)``.
        always_call: whether to call the hook even if `forward` or an earlier hook raised an error.

    Returns:
        a handle whose `remove()` removes the hook.

    Example:
        >>> from rushlight.nn.modules.module import register_module_forward_hook
        >>> with register_module_forward_hook(lambda module, args, output: print(type(module).__name__, output.shape)):
        ...     _ = nn.Sequential(nn.Linear(2, 4), nn.ReLU())(torch.zeros(1, 2))
        Linear torch.Size([1, 4])
        ReLU torch.Size([1, 4])
        Sequential torch.Size([1, 4])
    """
    marked = [
        table
        for table, wanted in (
            (_global_forward_hooks_with_kwargs, with_kwargs),
            (_global_forward_hooks_always_called, always_call),
        )
        if wanted
    ]
    return _global_forward_hooks.add(hook, extra=tuple(marked))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register `hook(module, grad_output)` for all modules, called when `grad_output` is known.

    Args:
        hook: the function. A return value other than None replaces the gradients.

    Returns:
        a handle whose `remove()` removes the hook.

    Example:
        >>> from rushlight.nn.modules.module import register_module_full_backward_pre_hook
        >>> with register_module_full_backward_pre_hook(lambda module, grad_output: print(grad_output)):
        ...     nn.ReLU()(torch.ones(2, requires_grad=True)).sum().backward()
        (tensor([1., 1.]),)
    """
    return _global_backward_pre_hooks.add(hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register `hook(module, grad_input, grad_output)` for all modules, called when `grad_input` is known.

    Args:
        hook: the function. A return value other than None replaces `grad_input`.

    Returns:
        a handle whose `remove()` removes the hook.

    Raises:
        RuntimeError: a hook of :func:`register_module_backward_hook` is registered.

    Example:
        >>> from rushlight.nn.modules.module import register_module_full_backward_hook
        >>> with register_module_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input)):
        ...     nn.ReLU()(torch.tensor([-1.0, 1.0], requires_grad=True)).sum().backward()
        (tensor([0., 1.]),)
    """
    return _global_backward_hooks.add_kind(hook, full=True)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register `hook(module, grad_input, grad_output)` for all modules, called when `grad_input` is known.

    Prefer the newer function :func:`register_module_full_backward_hook`, whose hooks are called in the same
    way. While a hook of one of these functions is registered, the other function raises RuntimeError.

    Raises:
        RuntimeError: a hook of :func:`register_module_full_backward_hook` is registered.

    Example:
        >>> from rushlight.nn.modules.module import register_module_backward_hook
        >>> handle = register_module_backward_hook(lambda module, grad_input, grad_output: None)
        >>> handle.remove()
    """
    return _global_backward_hooks.add_kind(hook, full=False)


def _one_kind(before: bool | None, full: bool, where: str) -> bool:
    """Check that all backward hooks of a module are registered with the same function, and return `full`.

    `full` is True if the function for the new hook is `register_full_backward_hook`; `before` is the same for
    the earlier hooks, or None if there are none. RuntimeError is raised if they differ.
    """
    if before is not None and before != full:
        raise RuntimeError(
            f"backward hooks of {where}: register_full_backward_hook and register_backward_hook "
            "cannot be combined\nhint: use register_full_backward_hook"
        )
    return full


_global_parameter_registration_hooks = HookTable()
_global_buffer_registration_hooks = HookTable()
_global_module_registration_hooks = HookTable()


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register `hook(module, name, parameter)`, called when a parameter is registered in any module.

    Args:
        hook: the function. A return value other than None is registered instead of the parameter.

    Returns:
        a handle whose `remove()` removes the hook.

    Example:
        >>> from rushlight.nn.modules.module import register_module_parameter_registration_hook
        >>> with register_module_parameter_registration_hook(lambda module, name, parameter: print(name)):
        ...     _ = nn.Linear(2, 3)
        weight
        bias
    """
    return _global_parameter_registration_hooks.add(hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register `hook(module, name, buffer)`, called when a buffer is registered in any module.

    Args:
        hook: the function. A return value other than None is registered instead of the buffer.

    Returns:
        a handle whose `remove()` removes the hook.

    Example:
        >>> from rushlight.nn.modules.module import register_module_buffer_registration_hook
        >>> with register_module_buffer_registration_hook(lambda module, name, buffer: print(name)):
        ...     _ = nn.BatchNorm1d(2)
        running_mean
        running_var
        num_batches_tracked
    """
    return _global_buffer_registration_hooks.add(hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register `hook(module, name, child)`, called when a module is registered as a child of any module.

    Args:
        hook: the function. A return value other than None is registered instead of the child.

    Returns:
        a handle whose `remove()` removes the hook.

    Example:
        >>> from rushlight.nn.modules.module import register_module_module_registration_hook
        >>> with register_module_module_registration_hook(lambda module, name, child: print(name, child)):
        ...     _ = nn.Sequential(nn.ReLU())
        0 ReLU()
    """
    return _global_module_registration_hooks.add(hook)


def passed_through(hooks: HookTable, module: Any, name: str, value: Any) -> Any:
    """Call the registration hooks, and return `value` or the object with which a hook replaced it."""
    for hook in list(hooks.values()):
        replacement = hook(module, name, value)
        if replacement is not None:
            value = replacement
    return value


class Hooks:
    """The base class of `Module`, with the methods that register and run hooks."""

    # True on an instance once a hook is registered that must run when the module is called.
    _hooked = False

    _forward_pre_hooks: HookTable = NO_HOOKS
    _forward_pre_hooks_with_kwargs: HookTable = NO_HOOKS
    _forward_hooks: HookTable = NO_HOOKS
    _forward_hooks_with_kwargs: HookTable = NO_HOOKS
    _forward_hooks_always_called: HookTable = NO_HOOKS
    _backward_pre_hooks: HookTable = NO_HOOKS
    _backward_hooks: HookTable = NO_HOOKS
    _is_full_backward_hook: bool | None = None  # whether the registered backward hooks are full ones

    def _hook_table(self, name: str) -> HookTable:
        table = getattr(self, name)
        if table is NO_HOOKS:
            table = HookTable()
            setattr(self, name, table)
        return table

    def _register_call_hook(
        self, name: str, hook: Any, prepend: bool, flags: dict[str, bool]
    ) -> RemovableHandle:
        marked = tuple(self._hook_table(f"{name}_{flag}") for flag, wanted in flags.items() if wanted)
        handle = self._hook_table(name).add(hook, prepend, marked)
        self._hooked = True
        return handle

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Register `hook(module, args)`, called before every call of `forward`.

        A return value other than None replaces the positional arguments. If `with_kwargs` is true, the hook
        is called as `hook(module, args, kwargs)`, and must return None or a pair `(args, kwargs)`.
        """
        return self._register_call_hook("_forward_pre_hooks", hook, prepend, {"with_kwargs": with_kwargs})

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Register `hook(module, args, output)`, called after every call of `forward`.

        A return value other than None replaces the output. If `with_kwargs` is true, the hook is called as
        `hook(module, args, kwargs, output)`. If `always_call` is true, the hook is called even if `forward`
        or an earlier hook raised an error; `output` is then None.
        """
        flags = {"with_kwargs": with_kwargs, "always_called": always_call}
        return self._register_call_hook("_forward_hooks", hook, prepend, flags)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Register `hook(module, grad_output)`, called when the gradients of the module's outputs have been computed.

        A return value other than None replaces `grad_output`. The hook requires an implementation of autograd, such as
        rushlight-autograd.
        """
        return self._register_call_hook("_backward_pre_hooks", hook, prepend, {})

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register `hook(module, grad_input, grad_output)`, called when the gradients of the module's inputs are computed.

        `grad_input` and `grad_output` are tuples, with None where there is no gradient. `grad_input` contains only the
        gradients of positional arguments. A return value other than None replaces `grad_input`. The hook
        requires an implementation of autograd, such as rushlight-autograd.

        Raises RuntimeError if :meth:`register_backward_hook` was called before for this module.
        """
        self._is_full_backward_hook = _one_kind(
            self._is_full_backward_hook, True, f"this {type(self).__name__}"
        )
        return self._register_call_hook("_backward_hooks", hook, prepend, {})

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register `hook(module, grad_input, grad_output)`, called like a hook of :meth:`register_full_backward_hook`.

        Prefer the newer method `register_full_backward_hook`. All backward hooks of a module must be
        registered with the same method.

        Raises RuntimeError if :meth:`register_full_backward_hook` was called before for this module.
        """
        self._is_full_backward_hook = _one_kind(
            self._is_full_backward_hook, False, f"this {type(self).__name__}"
        )
        return self._register_call_hook("_backward_hooks", hook, False, {})

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # Copy the tables into lists, because a hook may register or remove hooks.
        called: set[int] = set()
        try:
            for key, hook in [*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()]:
                args, kwargs = self._run_pre_hook(key, hook, args, kwargs)
            gate = None
            if (
                self._backward_hooks
                or self._backward_pre_hooks
                or _global_backward_hooks
                or _global_backward_pre_hooks
            ):
                gate = BackwardGate(self)
                args = gate.enter(args)
            result = self.forward(*args, **kwargs)  # type: ignore[attr-defined]
            for key, hook in [*_global_forward_hooks.items(), *self._forward_hooks.items()]:
                called.add(key)
                if key in self._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs:
                    replacement = hook(self, args, kwargs, result)
                else:
                    replacement = hook(self, args, result)
                if replacement is not None:
                    result = replacement
            return result if gate is None else gate.leave(result)
        except Exception:
            self._run_cleanup_hooks(called, args, kwargs)
            raise

    def _run_pre_hook(
        self, key: int, hook: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if key not in self._forward_pre_hooks_with_kwargs:
            replacement = hook(self, args)
            if replacement is None:
                return args, kwargs
            return (replacement if isinstance(replacement, tuple) else (replacement,)), kwargs
        replacement = hook(self, args, kwargs)
        if replacement is None:
            return args, kwargs
        if isinstance(replacement, tuple) and len(replacement) == 2:
            return replacement
        raise RuntimeError(
            f"forward pre-hook of {type(self).__name__}: got {type(replacement).__name__} from the hook, "
            "needs None or a pair (args, kwargs)"
        )

    def _run_cleanup_hooks(self, called: set[int], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for key, hook in [*_global_forward_hooks.items(), *self._forward_hooks.items()]:
            always = key in self._forward_hooks_always_called or key in _global_forward_hooks_always_called
            if not always or key in called:
                continue
            try:
                if key in self._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs:
                    hook(self, args, kwargs, None)
                else:
                    hook(self, args, None)
            except Exception as error:  # only warn, because another error is already being raised
                warnings.warn(
                    f"a forward hook of {type(self).__name__} with always_call=True raised {error!r} "
                    "while another error was being handled",
                    stacklevel=3,
                )


class BackwardGate:
    """An object that runs the backward hooks of one call of a module.

    The inputs and outputs pass through identity functions, whose backward functions run the hooks. Hooks on
    the input tensors themselves would not suffice: the gradient of an input that is also used elsewhere is a
    sum over all its uses.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self.grad_output: tuple[Any, ...] | None = None
        self.inputs: list[int] = []  # positions of tensors among the arguments
        self.count: int = 0
        self.watches_inputs: bool = False

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.count = len(args)
        self.inputs = [i for i, value in enumerate(args) if isinstance(value, Tensor)]
        tensors = [args[i] for i in self.inputs]
        if not core.is_grad_enabled() or not any(t.requires_grad for t in tensors):
            return args
        self.watches_inputs = True
        passed = list(args)
        for i, tensor in zip(self.inputs, _identity(self._inputs_ready, tensors), strict=True):
            passed[i] = tensor
        return tuple(passed)

    def leave(self, result: Any) -> Any:
        outputs = result if isinstance(result, tuple) else (result,)
        positions = [i for i, value in enumerate(outputs) if isinstance(value, Tensor)]
        tensors = [outputs[i] for i in positions]
        if not tensors:
            warnings.warn(
                f"backward hooks of {type(self.module).__name__} will not run: forward returned "
                f"{type(result).__name__}, needs a tensor or a tuple of tensors",
                stacklevel=4,
            )
            return result
        if not core.is_grad_enabled() or not any(t.requires_grad for t in tensors):
            return result

        def ready(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            return self._outputs_ready(grads, positions, len(outputs))

        passed = list(outputs)
        for i, tensor in zip(positions, _identity(ready, tensors), strict=True):
            passed[i] = tensor
        if not isinstance(result, tuple):
            return passed[0]
        # The constructor of a named tuple takes the fields as separate arguments.
        return type(result)(*passed) if hasattr(result, "_fields") else tuple(passed)

    def _backward_hooks(self) -> list[Any]:
        return [*_global_backward_hooks.values(), *self.module._backward_hooks.values()]

    def _outputs_ready(self, grads: tuple[Any, ...], positions: list[int], count: int) -> tuple[Any, ...]:
        full: list[Any] = [None] * count
        for i, grad in zip(positions, grads, strict=True):
            full[i] = grad
        current = tuple(full)
        for hook in [*_global_backward_pre_hooks.values(), *self.module._backward_pre_hooks.values()]:
            current = _replaced(hook(self.module, current), current, "grad_output", self.module)
        self.grad_output = current
        if not self.watches_inputs:  # no input gets a gradient, so call the backward hooks now
            for hook in self._backward_hooks():
                if hook(self.module, (None,) * self.count, current) is not None:
                    raise RuntimeError(
                        f"backward hook of {type(self.module).__name__}: must return None, because no input of the call "
                        "requires a gradient, but the hook returned gradients"
                    )
        return tuple(current[i] for i in positions)

    def _inputs_ready(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        full: list[Any] = [None] * self.count
        for i, grad in zip(self.inputs, grads, strict=True):
            full[i] = grad
        current = tuple(full)
        for hook in self._backward_hooks():
            result = hook(self.module, current, self.grad_output)
            current = _replaced(result, current, "grad_input", self.module)
        return tuple(current[i] for i in self.inputs)


def _replaced(result: Any, current: tuple[Any, ...], what: str, module: Any) -> tuple[Any, ...]:
    if result is None:
        return current
    if not isinstance(result, tuple):
        result = (result,)
    if len(result) != len(current):
        raise RuntimeError(
            f"backward hook of {type(module).__name__}: got {len(result)} gradients for {what} from the hook, "
            f"needs {len(current)}"
        )
    return result


_identity_function: Any = None


def _identity(
    ready: Callable[[tuple[Any, ...]], tuple[Any, ...]], tensors: list[Tensor]
) -> tuple[Tensor, ...]:
    """Return views of `tensors`.

    The backward pass calls `ready` with a tuple of the gradients of the views. `ready` returns a tuple of the
    gradients of `tensors`.
    """
    global _identity_function
    if _identity_function is None:
        _identity_function = _make_identity_function()
    result = _identity_function.apply(ready, *tensors)
    return result if isinstance(result, tuple) else (result,)


def _make_identity_function() -> Any:
    provider = getattr(core, "autograd", None)
    if not hasattr(provider, "Function"):
        raise RuntimeError(
            "backward hooks: no autograd provider is installed\nhint: pip install rushlight-autograd"
        )

    class Identity(provider.Function):  # type: ignore[name-defined]
        @staticmethod
        def forward(ctx: Any, ready: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
            ctx.ready = ready
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
            return tensors  # `apply` returns new tensors that share their memory

        @staticmethod
        def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
            return (None, *ctx.ready(grads))

    return Identity
