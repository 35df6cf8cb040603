"""Operators whose derivatives are written in Python: `Function`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight_autograd._C import FunctionCtx, _function_apply
from rushlight_core import Tensor, is_grad_enabled, no_grad

_REQUIRED = object()


def _defaults_of(forward: Callable[..., Any]) -> tuple[Any, ...]:
    """Return the default or _REQUIRED for each positional argument, or an empty tuple if no argument has a default."""
    import inspect  # takes long to import

    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [p for p in inspect.signature(forward).parameters.values() if p.kind in positional]
    found = tuple(_REQUIRED if p.default is p.empty else p.default for p in parameters)
    return found if any(one is not _REQUIRED for one in found) else ()


class Function(FunctionCtx):
    """The base class of custom operators. A subclass defines an operator by static methods, and the class method `apply`
    calls the operator.

    A subclass defines either `forward(ctx, *args)`, or `forward(*args)` together with `setup_context(ctx, inputs,
    output)`. A subclass also defines `backward(ctx, *grad_outputs)` (or its other name, `vjp`), which returns
    one gradient, or None, for each argument of forward. If an output does not contribute to the value that is
    differentiated, its entry in `grad_outputs` is a tensor of zeros, or None after
    `set_materialize_grads(False)`. The entry of an output that is not a tensor is None. The optional method
    `jvp` defines forward mode, and the optional method `vmap` defines how calls are batched.

    Shape:
        - A gradient has the shape of its argument.

    Raises:
        NotImplementedError: a required method is not defined.
        RuntimeError: a subclass defines both `backward` and `vjp`.

    Example:
        >>> class Exp(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         result = x.exp()
        ...         ctx.save_for_backward(result)
        ...         return result
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad_output):
        ...         (result,) = ctx.saved_tensors
        ...         return grad_output * result
        >>> x = torch.zeros(2, requires_grad=True)
        >>> Exp.apply(x).sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """

    _splits_context = False
    _has_jvp = False
    # The default of each argument of forward, _REQUIRED if it has none; only with `setup_context`, whose `inputs` contain
    # the defaults.
    _defaults: tuple[Any, ...] = ()
    _context_class: type

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_is_context" in cls.__dict__:
            return
        if "vjp" in cls.__dict__:
            if "backward" in cls.__dict__:
                raise RuntimeError(
                    f"{cls.__name__}: backward and vjp are two names of one method; define one of them"
                )
            cls.backward = cls.__dict__["vjp"]  # type: ignore[method-assign]
        cls._splits_context = cls.setup_context is not Function.setup_context
        cls._defaults = _defaults_of(cls.forward) if cls._splits_context else ()
        cls._has_jvp = cls.jvp is not Function.jvp
        # The class of the object that `grad_fn` returns. The class has the name of the operator's derivative.
        names = {
            "_is_context": True,
            "__module__": cls.__module__,
            "__doc__": f"The context of {cls.__name__}.",
        }
        cls._context_class = type(cls.__name__ + "Backward", (cls,), names)

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("a Function needs a static method forward(ctx, *args)")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        raise NotImplementedError("setup_context was not overridden")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError(
            "a Function needs a static method backward(ctx, *grad_outputs) to be differentiated"
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangents of the results of `forward`, in forward mode. Subclasses may define this method.

        If a subclass does not define `jvp`, forward mode differentiates the operators that `forward` calls.
        These tangents have no autograd graph, so reverse mode over forward mode, such as `grad` of `jvp`,
        raises NotImplementedError. To allow such derivatives, define `jvp`.

        Args:
            ctx: the context of forward; `ctx.saved_tensors` contains the tensors that were passed to
                `save_for_forward`.
            grad_inputs: the tangent of each argument. A tensor without a tangent is passed as a tensor of zeros, or as None
                after `set_materialize_grads(False)`. For an argument that is not a floating-point or complex tensor, None
                is passed.

        Returns:
            the tangent of the output, of the same shape, or None; if there are several outputs, a tuple with one entry for
            each.
        """
        raise NotImplementedError("jvp was not overridden")

    #: Whether vmap may run forward and backward on batched tensors.
    generate_vmap_rule = False

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """Compute a batched call inside vmap, and return (output, out_dims). Subclasses may define this method.

        Args:
            info: the number of examples, `info.batch_size`, and the `randomness` of `torch.vmap`,
                `info.randomness`.
            in_dims: the dimension of each argument along which the examples lie; None for an argument that is
                not batched.
            args: the arguments, with all examples.
        """
        raise NotImplementedError("vmap was not overridden")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run `forward`, and record the call in the autograd graph if an argument requires grad."""
        if len(args) < len(cls._defaults) and _REQUIRED not in cls._defaults[len(args) :]:
            args += cls._defaults[len(args) :]
        return _function_apply(cls, args)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise RuntimeError: a Function is called by its classmethod `apply`."""
        raise RuntimeError(
            f"{type(self).__name__}: an object of a Function cannot be called\n"
            f"hint: call {type(self).__name__}.apply(...)"
        )

    @classmethod
    def _apply_batched(cls, args: tuple[Any, ...]) -> Any:
        from rushlight_autograd.batched_function import apply

        return apply(cls, args)

    @classmethod
    def _apply_dual(cls, args: tuple[Any, ...], level: int) -> Any:
        from rushlight_autograd.dual_function import apply

        return apply(cls, args, level)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` that cannot itself be differentiated: a second derivative raises RuntimeError.

    Args:
        backward: the static method of a :class:`Function`.

    Example:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...
        ...     @staticmethod
        ...     @torch.autograd.function.once_differentiable
        ...     def backward(ctx, grad):
        ...         return 2 * grad
        >>> x = torch.ones(1, requires_grad=True)
        >>> torch.autograd.grad(Double.apply(x), x)
        (tensor([2.]),)
    """

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        if not is_grad_enabled():
            return backward(ctx, *grads)
        with no_grad():
            result = backward(ctx, *grads)
        sources = [t for t in (*grads, *ctx.saved_tensors) if isinstance(t, Tensor) and t.requires_grad]
        if not sources:
            return result
        results = result if isinstance(result, tuple) else (result,)
        # The results have no history. Record a node that depends on all tensors on which the results may depend.
        blocked = _Once.apply(type(ctx).__name__, len(results), *results, *sources)
        blocked = blocked if isinstance(blocked, tuple) else (blocked,)
        return blocked if isinstance(result, tuple) else blocked[0]

    return wrapper


class _Once(Function):
    """A Function that returns its first `count` arguments, and whose backward pass raises RuntimeError."""

    @staticmethod
    def forward(ctx: Any, function: str, count: int, *args: Any) -> Any:
        ctx.function = function
        return tuple(g.clone() if isinstance(g, Tensor) else g for g in args[:count])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            f"the backward of {ctx.function} is marked once_differentiable: it has no second derivative"
        )
