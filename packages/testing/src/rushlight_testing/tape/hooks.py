"""Hooks of tensors, which run when a gradient arrives or after a leaf has accumulated it."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable
from typing import Any

from rushlight_core import Tensor
from rushlight_testing.tape.graph import Gradients, Hooks, Node, history_of, retain, state_of

_number = itertools.count()


class RemovableHandle:
    """A handle that removes a hook, by `remove()` or at the end of a `with` block."""

    def __init__(self, hooks: Hooks, key: int) -> None:
        self._hooks, self._key = hooks, key

    def remove(self) -> None:
        self._hooks.pop(self._key, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def _add(hooks: Hooks, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    key = next(_number)
    hooks[key] = hook
    return RemovableHandle(hooks, key)


def register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Call `hook` with the gradient of the tensor in every backward pass. A result other than None replaces the gradient."""
    if not self.requires_grad:
        raise RuntimeError("register_hook(): the tensor does not require grad, so it gets no gradient")
    return _add(_hooks_of(self), hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Call `hook` with this leaf each time that a backward pass has added a gradient to `grad`."""
    if not self.requires_grad or not self.is_leaf:
        raise RuntimeError(
            "register_post_accumulate_grad_hook(): the tensor is not a leaf that requires grad"
        )
    return _add(state_of(self).post_accumulate, hook)


def retain_grad(self: Tensor) -> None:
    """Let backward passes store the tensor's gradient in `grad`, even if the tensor is not a leaf."""
    if not self.requires_grad:
        raise RuntimeError("retain_grad(): the tensor does not require grad, so it gets no gradient")
    history = history_of(self)
    if history is not None and history.retained is None:
        retain(history, functools.partial(_keep, weakref.ref(self)))


def retains_grad(self: Tensor) -> bool:
    return not self.is_leaf and state_of(self).retained is not None


def _keep(tensor: weakref.ref[Tensor], grad: Tensor) -> None:
    alive = tensor()
    if alive is not None:
        alive.grad = grad.clone() if alive.grad is None else alive.grad + grad


def _hooks_of(t: Tensor) -> Hooks:
    """Return the hooks of a leaf or, for a computed tensor, the hooks of its node. The node may outlive the tensor."""
    history = history_of(t)
    if history is None or history.node is None:
        return state_of(t).hooks
    return history.node.tensor_hooks.setdefault(history.index, {})


def run_hooks(node: Node, grads: Gradients) -> None:
    """Run the hooks on the gradients of a node's results."""
    for index, hooks in node.tensor_hooks.items():
        for hook in list(hooks.values()):
            grad = grads[index]
            if grad is not None and (replaced := hook(grad)) is not None:
                grads[index] = replaced
    for index, keep in list(node.retained):
        grad = grads[index]
        if grad is not None:
            keep(grad)
