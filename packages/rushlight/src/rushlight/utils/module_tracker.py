"""Track which modules are running."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from rushlight_autograd.graph import register_multi_grad_hook
from rushlight_autograd.variable import Variable
from rushlight_core import Tensor
from rushlight_core.pytree import tree_leaves
from rushlight_nn import Module
from rushlight_nn.hooks import register_module_forward_hook, register_module_forward_pre_hook

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Context manager that tracks which modules run, in forward and backward passes.

    The set `parents` contains the names of the modules that are running, and "Global". The name of an
    outermost module is the name of its class. The name of a child consists of its parent's name, a dot and
    the name of its attribute.

    Example:
        >>> from rushlight.utils.module_tracker import ModuleTracker
        >>> model = nn.Sequential(nn.Linear(2, 2))
        >>> seen = []
        >>> with ModuleTracker() as tracker:
        ...     handle = model[0].register_forward_pre_hook(lambda *call: seen.append(sorted(tracker.parents)))
        ...     _ = model(torch.ones(1, 2))
        >>> seen
        [['Global', 'Sequential', 'Sequential.0']]
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._pass_begun = False

    @property
    def is_bw(self) -> bool:
        """Whether this thread runs a backward pass."""
        try:
            Variable._execution_engine.queue_callback(lambda: None)
        except RuntimeError:
            return False
        return True

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._before_forward),
            register_module_forward_hook(self._after_forward),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _name_of(self, module: Module) -> str:
        if module not in self._names:
            root = type(module).__name__
            for path, part in module.named_modules():
                self._names[part] = f"{root}.{path}" if path else root
        return self._names[module]

    def _before_forward(self, module: Module, inputs: Any) -> None:
        name = self._name_of(module)
        self.parents.add(name)
        # A module's backward pass ends when the gradients of its inputs are known.
        self._call_at_gradients(inputs, lambda grads: self.parents.discard(name))

    def _after_forward(self, module: Module, inputs: Any, output: Any) -> None:
        name = self._name_of(module)
        self.parents.discard(name)

        def begin_backward(grads: Any) -> None:
            if not self._pass_begun:
                self._pass_begun = True
                Variable._execution_engine.queue_callback(self._end_pass)
            self.parents.add(name)

        self._call_at_gradients(output, begin_backward)

    def _call_at_gradients(self, values: Any, call: Callable[[Any], None]) -> None:
        tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor) and leaf.requires_grad]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, call))

    def _end_pass(self) -> None:
        self.parents = {"Global"}
        self._pass_begun = False
