"""Convolutions: core's operators by their names in PyTorch."""

from __future__ import annotations

from .._core import operator

conv1d = operator("conv1d")
conv2d = operator("conv2d")
conv3d = operator("conv3d")
conv_transpose1d = operator("conv_transpose1d")
conv_transpose2d = operator("conv_transpose2d")
conv_transpose3d = operator("conv_transpose3d")
