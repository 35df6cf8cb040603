"""Grad mode, inference mode and strict mode, as context managers and as decorators."""

from __future__ import annotations

from . import _C

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200  # inspect.CO_*; inspect takes long to import


class _Mode(_C._ModeScope):
    """A thread-local setting that is changed for a `with` block or for each call of a decorated function.

    In a decorated generator or coroutine, the setting applies while the generator or coroutine runs, but not
    while it is suspended.
    """

    __slots__ = ()
    __enter__: Callable[..., None]
    __exit__: Callable[..., None] = _C._ModeScope._restore

    def _fresh(self) -> _Mode:
        """Return a copy of this context manager, because calls of a decorated function may overlap."""
        return type(self)()

    def __call__(self, function: F) -> F:
        if isinstance(function, type):
            name = type(self).__name__
            raise TypeError(
                f"{name}: a class cannot be decorated, got {function.__name__}\n"
                f"hint: decorate methods of the class"
            )
        if not callable(function):
            name = type(self).__name__
            raise TypeError(f"{name}: only functions can be decorated, got {type(function).__name__}")
        flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        fresh = self._fresh
        wrapper: Any
        if flags & _GENERATOR:

            def wrapper(*args: Any, **kwargs: Any) -> Any:
                return (yield from _stepwise(fresh, function(*args, **kwargs)))

        elif flags & _COROUTINE:

            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                return await _Steps(fresh, function(*args, **kwargs))

        elif flags & _ASYNC_GENERATOR:
            raise TypeError(f"{type(self).__name__}: an asynchronous generator cannot be decorated")
        else:

            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with fresh():
                    return function(*args, **kwargs)

        # The same as functools.wraps, without importing it.
        for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
            if hasattr(function, name):
                setattr(wrapper, name, getattr(function, name))
        wrapper.__dict__.update(getattr(function, "__dict__", {}))
        wrapper.__wrapped__ = function
        return wrapper


def _stepwise(mode: Callable[[], _Mode], inner: Any) -> Any:
    """Run the generator or coroutine `inner`, with the setting `mode()` except while `inner` is suspended."""
    try:
        with mode():
            item = inner.send(None)
        while True:
            try:
                sent = yield item
            except GeneratorExit:
                with mode():
                    inner.close()
                raise
            except BaseException as error:
                with mode():
                    item = inner.throw(error)
            else:
                with mode():
                    item = inner.send(sent)
    except StopIteration as stop:
        return stop.value


class _Steps:
    """An awaitable that runs a decorated coroutine one step at a time."""

    def __init__(self, mode: Callable[[], _Mode], inner: Any) -> None:
        self._steps = _stepwise(mode, inner)

    def __await__(self) -> Any:
        return self._steps


class no_grad(_Mode):  # noqa: N801
    """A context manager and decorator that disables gradient recording.

    Results do not require grad. The setting applies to the running thread. Forward-mode differentiation is
    not affected.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    __slots__ = ()
    __enter__: Callable[..., None] = _C._ModeScope._turn_off


class enable_grad(_Mode):  # noqa: N801
    """A context manager and decorator that enables gradient recording inside of `no_grad`.

    `enable_grad` has no effect inside of `inference_mode`.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     with torch.enable_grad():
        ...         y = x * 2
        >>> y.requires_grad
        True
    """

    __slots__ = ()
    __enter__: Callable[..., None] = _C._ModeScope._turn_on


class set_grad_enabled(_Mode):  # noqa: N801
    """Turn gradient recording on or off immediately.

    In a `with` statement, the previous setting is restored at the end of the block.

    Args:
        mode: whether operators are recorded.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.set_grad_enabled(False):
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    __slots__ = ("mode",)
    mode: bool

    def __new__(cls, mode: bool) -> set_grad_enabled:
        self = super().__new__(cls)
        self.mode = bool(mode)
        self._turn_on() if mode else self._turn_off()
        return self

    def _fresh(self) -> _Mode:
        return set_grad_enabled(self.mode)

    def __call__(self, function: F) -> F:
        self._restore()  # the setting is for the decorated function, not for the code after it
        return super().__call__(function)

    def __enter__(self) -> None:
        """Do nothing, because the constructor has already changed the mode."""


class inference_mode(_Mode):  # noqa: N801
    """A context manager and decorator that disables gradient recording. New tensors can never require grad.

    Args:
        mode: whether inference mode is on; False turns it off, for use inside of another `inference_mode`.

    Example:
        >>> with torch.inference_mode():
        ...     y = torch.ones(2, requires_grad=True) * 2
        >>> y.requires_grad, y.is_inference()
        (False, True)
    """

    __slots__ = ("mode",)
    mode: bool

    def __new__(cls, mode: Any = True) -> Any:
        if callable(mode):  # @inference_mode without parentheses
            return cls()(mode)
        self = super().__new__(cls)
        self.mode = bool(mode)
        return self

    def _fresh(self) -> _Mode:
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        self._enter_inference() if self.mode else self._leave_inference()


class strict(_Mode):  # noqa: N801
    """A context manager and decorator in which operators raise an error instead of adding dimensions or losing precision.

    Use `strict` as ``with strict():`` or ``@strict()``. The setting applies to the running thread. The checks
    apply to elementwise operators on several tensors, in their functional, in-place and out= forms.
    RuntimeError is raised for:

    * tensors with different numbers of dimensions, except 0-d tensors. For example, a bias of shape (4,)
      could be added to the wrong dimension of a tensor of shape (3, 4, 4).
    * tensors whose values the dtype of the result cannot represent exactly. Examples are an int64 tensor
      combined with a float32 tensor, and a 0-d float64 tensor combined with a float32 tensor.

    Python numbers are accepted with all dtypes, and sizes of 1 broadcast. Gradients, and operators that are called by other
    operators, are not checked.

    Args:
        mode: whether the checks are on; False turns them off, for use inside of another `strict`.

    Raises:
        RuntimeError: an operator in the block would add dimensions or lose precision; the message names the operator, the
            arguments and a fix.

    Example:
        >>> with torch.strict():
        ...     torch.ones(3, 4) + torch.ones(4)
        Traceback (most recent call last):
            ...
        RuntimeError: ...
    """

    __slots__ = ("mode",)
    mode: bool

    def __new__(cls, mode: Any = True) -> Any:
        if callable(mode):  # @strict without parentheses
            return cls()(mode)
        self = super().__new__(cls)
        self.mode = bool(mode)
        return self

    def _fresh(self) -> _Mode:
        return strict(self.mode)

    def __enter__(self) -> None:
        self._enter_strict() if self.mode else self._leave_strict()
