"""Operations of traced programs, by the file that PyTorch has them in: there are none."""

from rushlight.fx import Node

__all__ = ["Node"]
