"""Conversion of the weights of convolutions to another memory format."""

from __future__ import annotations

import rushlight_core as core

from .._typing import Any
from ..layers.conv import Conv2d, Conv3d
from ..layers.conv_transpose import ConvTranspose2d, ConvTranspose3d

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..module import Module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Convert the weights of all two-dimensional convolutions of a module to a memory format, in place.

    Args:
        module: the module, which is returned.
        memory_format: the memory format, such as `channels_last`.

    Example:
        >>> model = nn.Sequential(nn.Conv2d(3, 8, 3))
        >>> model = nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last)
        >>> model[0].weight.is_contiguous(memory_format=torch.channels_last)
        True
    """
    return _converted(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Convert the weights of all three-dimensional convolutions of a module to a memory format, in place.

    Args:
        module: the module, which is returned.
        memory_format: the memory format, such as `channels_last_3d`.

    Example:
        >>> model = nn.Sequential(nn.Conv3d(3, 8, 3))
        >>> model = nn.utils.convert_conv3d_weight_memory_format(model, torch.channels_last_3d)
        >>> model[0].weight.is_contiguous(memory_format=torch.channels_last_3d)
        True
    """
    return _converted(module, (Conv3d, ConvTranspose3d), memory_format)


def _converted(module: Module, kinds: tuple[type, ...], memory_format: Any) -> Module:
    for layer in module.modules():
        if isinstance(layer, kinds):
            with core.no_grad():
                layer.weight.data = layer.weight.detach().clone().contiguous(memory_format=memory_format)
    return module
