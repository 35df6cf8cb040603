"""Functions with user-defined gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_testing.tape.formulas import fit
from rushlight_testing.tape.graph import (
    Gradients,
    Node,
    Saved,
    check_inplace,
    edge_of,
    rebase_history,
    set_history,
)


class FunctionCtx:
    """The object `ctx`, in which `forward` stores tensors (of any shape) and attributes for `backward`.

    Args:
        needs_input_grad: a tuple of bools: whether each argument of `apply` requires grad.

    Example::

        class Exp(Function):
            @staticmethod
            def forward(ctx, x):
                result = x.exp()
                ctx.save_for_backward(result)
                return result

            @staticmethod
            def backward(ctx, grad):
                (result,) = ctx.saved_tensors
                return grad * result
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.materialize_grads: bool = True
        self._to_save: tuple[Tensor | None, ...] = ()
        self._saved: list[Saved | None] = []
        self._dirty: tuple[Tensor, ...] = ()
        self._non_differentiable: tuple[Tensor, ...] = ()
        self._node: Node | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save arguments and results for `backward`; store other values as attributes of `ctx`."""
        self._to_save = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare arguments that `forward` has modified in place. `forward` must return such arguments."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Mark results as not differentiable."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether `backward` receives zeros instead of None for results without a gradient."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        if self._node is None:
            return self._to_save
        self._node.check_not_released()
        return tuple(None if s is None else s.unpack(self._node) for s in self._saved)


class FunctionNode(Node):
    """A node that calls the `backward` of a Function."""

    function: type[Function]
    context: FunctionCtx

    __slots__ = ("arguments", "context", "function", "results")

    def __init__(self, function: type[Function], context: FunctionCtx, arguments: Sequence[Any]) -> None:
        super().__init__(function.__name__ + "Backward", [edge_of(a) for a in arguments])
        self.function, self.context = function, context
        self.arguments: list[_Like] = [_Like(a) for a in arguments]
        self.results: list[_Like] = []

    def apply(self, grads: Gradients) -> Gradients:
        self.check_not_released()
        if self.context.materialize_grads:
            grads = [like.zeros() if g is None else g for g, like in zip(grads, self.results, strict=True)]
        given = self.function.backward(self.context, *grads)
        shares = list(given) if isinstance(given, tuple) else [given]
        wanted = len(self.edges)
        if len(shares) > wanted and all(s is None for s in shares[wanted:]):
            del shares[wanted:]
        if len(shares) != wanted:
            raise RuntimeError(f"{self.title}: backward returned {len(shares)} gradients, needs {wanted}")
        return [
            fit(share, *like[:3]) if edge else None
            for edge, share, like in zip(self.edges, shares, self.arguments, strict=True)
        ]

    def release(self) -> None:
        super().release()
        self.context._saved.clear()


class _Like(tuple[Any, ...]):
    """The shape, dtype and device of a tensor."""

    def __new__(cls, value: Any) -> _Like:
        t = isinstance(value, Tensor)
        return super().__new__(
            cls, (tuple(value.shape), value.dtype, value.device) if t else ((), None, None)
        )

    def zeros(self) -> Tensor | None:
        shape, dtype, device = self
        return None if dtype is None else core.zeros(shape, dtype=dtype, device=device)


class Function:
    """The base class of operations with user-defined gradients.

    A subclass defines the static methods `forward(ctx, ...)` and `backward(ctx, *grads)`. Alternatively, a subclass defines
    `forward(...)` without `ctx`, `setup_context(ctx, inputs, output)` and `backward`. Programs call `apply`.

    Example::

        class Double(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        Double.apply(torch.ones(2, requires_grad=True))
    """

    forward: Any
    backward: Any
    setup_context: Any = None

    @classmethod
    def apply(cls, *args: Any) -> Any:
        recorded = core.is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in args)
        context = FunctionCtx(tuple(isinstance(a, Tensor) and a.requires_grad for a in args))
        node = FunctionNode(cls, context, args) if recorded else None
        with core.no_grad():
            if cls.setup_context is None:
                output = cls.forward(context, *args)
            else:
                output = cls.forward(*args)
                cls.setup_context(context, args, output)
            results = [
                _result(value, args, context)
                for value in (output if isinstance(output, tuple) else (output,))
            ]
        if node is not None:
            _record(node, results, args)
        return tuple(results) if isinstance(output, tuple) else results[0]


def _result(value: Any, args: tuple[Any, ...], context: FunctionCtx) -> Any:
    """Return the result `value` of `forward`, or `value.detach()` if it is an unmodified argument.

    An argument that `forward` modified in place is marked by `ctx.mark_dirty`, and is returned itself.
    """
    if isinstance(value, Tensor) and _is_in(value, args) and not _is_in(value, context._dirty):
        alias = value.detach()
        if _is_in(value, context._non_differentiable):
            context._non_differentiable = (*context._non_differentiable, alias)
        return alias
    return value


def _record(node: FunctionNode, results: list[Any], args: tuple[Any, ...]) -> None:
    context = node.context
    node.num_results, node.results = len(results), [_Like(r) for r in results]
    for index, result in enumerate(results):
        if not isinstance(result, Tensor) or _is_in(result, context._non_differentiable):
            continue
        if _is_in(result, context._dirty):
            check_inplace(type(node).__name__, result)
            rebase_history(result, node, index)
        else:
            set_history(result, node, index)
    context._saved = [
        None if t is None else Saved(t, next((i for i, r in enumerate(results) if r is t), None))
        for t in context._to_save
    ]
    context._to_save, context._node = (), node


def _is_in(value: Any, values: Sequence[Any]) -> bool:
    return any(value is v for v in values)
