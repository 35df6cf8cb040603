"""What lazy layers are made with, by the file that PyTorch has it in."""

from rushlight_nn.lazy import LazyModuleMixin

__all__ = ["LazyModuleMixin"]
