"""Weights in another order in memory."""

from __future__ import annotations

import rushlight_core as core

from .._typing import Any
from ..layers.conv import Conv2d, Conv3d
from ..layers.conv_transpose import ConvTranspose2d, ConvTranspose3d

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..module import Module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Convert the weights of all two-dimensional convolutions to a memory format, in place; return the module."""
    return _converted(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """The same for three dimensions."""
    return _converted(module, (Conv3d, ConvTranspose3d), memory_format)


def _converted(module: Module, kinds: tuple[type, ...], memory_format: Any) -> Module:
    for layer in module.modules():
        if isinstance(layer, kinds):
            with core.no_grad():
                layer.weight.data = layer.weight.detach().clone().contiguous(memory_format=memory_format)
    return module
