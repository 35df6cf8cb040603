"""The recorded graph: looking at it, and what stands in it for the tensors that it saves."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from rushlight_autograd._C import Node, RemovableHandle, _pop_saved_hooks, _push_saved_hooks
from rushlight_core import Tensor

__all__ = ["Node", "RemovableHandle", "save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks:  # noqa: N801
    """Inside, every tensor that an operator saves for its gradient goes through `pack_hook`, and what that returns is
    kept in its place; `unpack_hook` makes the tensor of it again, when and as often as the gradient needs it.

    `pack_hook(tensor)` gets a tensor without history and may return anything. What `unpack_hook(packed)` returns must have
    its shape and dtype. Hooks nest; the innermost alone is called, on the thread that entered it.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _push_saved_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """Inside, saved tensors wait in the memory of the CPU, pinned if `pin_memory`; those that are there stay as they are."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            if tensor.device.type == "cpu":
                return tensor.device, tensor
            copy = tensor.to("cpu")
            return tensor.device, copy.pin_memory() if pin_memory else copy

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)
