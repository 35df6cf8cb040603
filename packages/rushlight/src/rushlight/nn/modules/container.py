"""Containers, by the file that PyTorch has them in."""

from rushlight_nn.layers.container import (
    ModuleDict,
    ModuleList,
    Sequential,
)
from rushlight_nn.layers.parameter_container import (
    ParameterDict,
    ParameterList,
)

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
