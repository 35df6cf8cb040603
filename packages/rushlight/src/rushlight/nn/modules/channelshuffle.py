"""Channel shuffle, by the file that PyTorch has it in."""

from rushlight_nn import (
    ChannelShuffle,
)

__all__ = [
    "ChannelShuffle",
]
