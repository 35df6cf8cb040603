"""Custom Functions inside vmap. A Function must define a static method `vmap` or set `generate_vmap_rule`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from rushlight_autograd._C import (
    _batch,
    _batch_at,
    _peel,
    _resume_batch,
    _suspend_batch,
    _suspend_other_batches,
    _unbatch,
)
from rushlight_autograd.batching import RANDOMNESS, batch_level
from rushlight_autograd.function import Function
from rushlight_autograd.tree import broadcast_prefix, flatten
from rushlight_core import Tensor


class VmapInfo(NamedTuple):
    """The argument `info` of a Function's static method `vmap`: the batch size and the `randomness` of `torch.vmap`."""

    batch_size: int
    randomness: str


def apply(function: type[Function], args: tuple[Any, ...]) -> Any:
    """Call `function.apply(*args)` inside vmap, once for all examples of the innermost vmap."""
    peeled = [_peel(x) if isinstance(x, Tensor) and x._is_batched() else None for x in args]
    number, randomness = max((p[1], p[2]) for p in peeled if p is not None)
    values, in_dims, size = list(args), [None] * len(args), 0
    for i, p in enumerate(peeled):
        if p is not None and p[1] == number:
            values[i], in_dims[i], size = p[0], 0, p[0].shape[0]  # type: ignore[call-overload]
    info = VmapInfo(size, RANDOMNESS[randomness])
    own = function.vmap is not Function.vmap
    if own and function.generate_vmap_rule:
        raise RuntimeError(
            f"{function.__name__}: has both a static method vmap and generate_vmap_rule=True, must have only one of them"
        )
    if not own and not function.generate_vmap_rule:
        raise RuntimeError(
            f"{function.__name__}: cannot be used inside vmap, because it defines no rule for batches\n"
            "hint: set generate_vmap_rule = True if forward and backward call only operators, or write a "
            "static method vmap(info, in_dims, *args) that returns (output, out_dims)"
        )
    with _outside(number):
        if own:
            result = function.vmap(info, tuple(in_dims), *values)
            if not isinstance(result, tuple) or len(result) != 2:
                raise RuntimeError(f"{function.__name__}.vmap: must return a tuple (output, out_dims)")
            output, out_dims = result
        else:
            rule = _Rule(function, tuple(in_dims), info)
            output, out_dims = _generated_class(function).apply(rule, *values), 0
    leaves, tree = flatten(output)
    dims = broadcast_prefix(out_dims, tree)
    if dims is None:
        raise RuntimeError(
            f"{function.__name__}.vmap: out_dims must have the structure of the output, {tree}, got {out_dims!r}"
        )
    return tree.unflatten(
        y if d is None or not isinstance(y, Tensor) else _batch_at(y, d, number)
        for y, d in zip(leaves, dims, strict=True)
    )


def _generated_class(function: type[Function]) -> type[Function]:
    """Return a Function with the name of `function` that computes `function` for all examples of a batch."""
    made = function.__dict__.get("_generated_class")
    if made is None:
        base = _Generated if function.jvp is Function.jvp else _GeneratedWithJvp
        made = type(function.__name__, (base,), {})
        function._generated_class = made  # type: ignore[attr-defined]
    return made


@contextmanager
def _outside(number: int) -> Iterator[None]:
    _suspend_batch(number)
    try:
        yield
    finally:
        _resume_batch()


@contextmanager
def _on_all_examples(ctx: Any, grads: tuple[Any, ...]) -> Iterator[None]:
    """Return a context manager that suspends the levels of vmap in which none of `grads` is batched.

    In these levels, the backward pass runs once, on tensors that contain all examples.
    """
    # The method of a generated Function inside another one runs on batched tensors, in the levels of the outer one.
    hides = not isinstance(ctx, _Context) and _suspend_other_batches([g for g in grads if g is not None])
    try:
        yield
    finally:
        if hides:
            _resume_batch()


class _Rule(NamedTuple):
    function: type[Function]
    in_dims: tuple[int | None, ...]
    info: VmapInfo


class _Context:
    """The `ctx` that a generated Function passes to the methods of the original Function.

    The tensors that the Function saves are stored, with all examples, in the `ctx` of the generated Function.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: tuple[Any, ...] = ()
        self._for_forward: tuple[Any, ...] = ()
        self._not_differentiable: tuple[Tensor, ...] = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        self._for_forward = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        self._not_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        self._materialize = value

    def mark_dirty(self, *tensors: Tensor) -> None:
        raise NotImplementedError(
            "mark_dirty: a Function with generate_vmap_rule=True must not change its arguments in place"
        )


class _Generated(Function):
    """A Function that computes a whole batch, generated from a Function that computes one example."""

    generate_vmap_rule = True

    @staticmethod
    def forward(ctx: Any, rule: _Rule, *values: Any) -> Any:
        inner = _Context(ctx.needs_input_grad[1:])
        with batch_level(*rule.info):
            args = [x if d is None else _batch(x, d) for x, d in zip(values, rule.in_dims, strict=True)]
            if rule.function._splits_context:
                output = rule.function.forward(*args)
                rule.function.setup_context(inner, tuple(args), output)
            else:
                output = rule.function.forward(inner, *args)
            outputs = output if isinstance(output, tuple) else (output,)
            results = [_unbatch(y, 0) if isinstance(y, Tensor) else y for y in outputs]
            saved = [_unbatch(t, 0) if _has_rows(t) else t for t in inner.saved_tensors]
            ctx.rows = tuple(map(_has_rows, inner.saved_tensors))
            aside = [
                r
                for r, y in zip(results, outputs, strict=True)
                if any(y is t for t in inner._not_differentiable)
            ]
            for_forward = [_unbatch(t, 0) if _has_rows(t) else t for t in inner._for_forward]
            ctx.forward_rows = tuple(map(_has_rows, inner._for_forward))
        inner.saved_tensors = inner._for_forward = ()
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*for_forward)
        ctx.mark_non_differentiable(*aside)
        ctx.set_materialize_grads(inner._materialize)
        ctx.inner, ctx.rule = inner, rule
        return tuple(results) if isinstance(output, tuple) else results[0]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        inner, rule = ctx.inner, ctx.rule
        with _on_all_examples(ctx, grads), batch_level(*rule.info):
            inner.saved_tensors = tuple(
                _batch(t, 0) if rows else t for t, rows in zip(ctx.saved_tensors, ctx.rows, strict=True)
            )
            try:
                found = rule.function.backward(inner, *(g if g is None else _batch(g, 0) for g in grads))
            finally:
                inner.saved_tensors = ()
            found = found if isinstance(found, tuple) else (found,)
            result: list[Any] = [None]
            for g, d in zip(found, rule.in_dims, strict=True):
                rows = g if g is None else _unbatch(g, 0)
                # The gradient of an argument that all examples share is the sum of the gradients of all examples.
                result.append(rows if rows is None or d is not None else rows.sum(0))
        return tuple(result)


class _GeneratedWithJvp(_Generated):
    """A generated Function whose `jvp` calls the `jvp` of the original Function on the whole batch."""

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        inner, rule = ctx.inner, ctx.rule
        with batch_level(*rule.info):
            inner.saved_tensors = tuple(
                _batch(t, 0) if rows else t
                for t, rows in zip(ctx.saved_tensors, ctx.forward_rows, strict=True)
            )
            try:
                found = rule.function.jvp(
                    inner,
                    *(
                        t if t is None or d is None else _batch(t, 0)
                        for t, d in zip(tangents, rule.in_dims, strict=True)
                    ),
                )
            finally:
                inner.saved_tensors = ()
            if isinstance(found, tuple):
                return tuple(t if t is None else _unbatch(t, 0) for t in found)
            return found if found is None else _unbatch(found, 0)


def _has_rows(t: Any) -> bool:
    return isinstance(t, Tensor) and t._is_batched()
