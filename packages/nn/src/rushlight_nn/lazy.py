"""Modules that determine the shapes of their parameters when they are first called."""

from __future__ import annotations

from ._typing import Any
from .parameter import is_lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .hooks import RemovableHandle


class LazyModuleMixin:
    """A mixin for layers that are created before the sizes of their inputs are known.

    The class of such a layer lists this mixin before `Module` in its bases. The layer registers parameters
    of the type `UninitializedParameter` and defines `initialize_parameters`. This method receives the
    arguments of the first call, and calls `parameter.materialize(shape)` for each parameter. The layer then
    becomes an instance of `cls_to_become`, unless `cls_to_become` is None. `load_state_dict` also determines
    the shapes of the parameters.

    Raises:
        NotImplementedError: the layer does not define `initialize_parameters` (raised by the first call).
        RuntimeError: `initialize_parameters` leaves a parameter without a shape (raised by the first call).

    Example:
        >>> class LazyScale(nn.modules.lazy.LazyModuleMixin, nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.weight = nn.UninitializedParameter()
        ...
        ...     def initialize_parameters(self, input):
        ...         self.weight.materialize(input.shape[-1:])
        ...         nn.init.ones_(self.weight)
        ...
        ...     def forward(self, input):
        ...         return input * self.weight
        >>> LazyScale()(torch.tensor([[1.0, 2.0]])).detach()
        tensor([[1., 2.]])
    """

    cls_to_become: type | None = None
    _initialize_hook: RemovableHandle

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The hook is a function, because a bound method would create a reference cycle, which keeps unused models in
        # memory.
        handle = self.register_forward_pre_hook(_infer_parameters, with_kwargs=True)  # type: ignore[attr-defined]
        self._initialize_hook = handle

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Determine the shapes of all parameters from the arguments of the first call.

        Subclasses must define this method.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define initialize_parameters")

    def has_uninitialized_params(self) -> bool:
        """Return whether this module itself has a parameter or buffer without a shape; its children are not checked."""
        own = (*self._parameters.values(), *self._buffers.values())  # type: ignore[attr-defined]
        return any(is_lazy(tensor) for tensor in own)


def _infer_parameters(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(
            f"{type(module).__name__}.initialize_parameters: a parameter or buffer still has no shape\n"
            "hint: call materialize(shape) for each parameter and buffer"
        )
    module._initialize_hook.remove()
    del module._initialize_hook
    if not (
        module._forward_pre_hooks
        or module._forward_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    ):
        module.__dict__.pop("_hooked", None)  # later calls are as fast as calls of other modules
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


__all__ = ["LazyModuleMixin"]
