"""Orders of memory of weights, by the file that PyTorch has it in."""

from rushlight_nn.utils import (
    convert_conv2d_weight_memory_format,
    convert_conv3d_weight_memory_format,
)

__all__ = [
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
]
