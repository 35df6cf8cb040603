"""Quantisation of models is not supported. `ao.quantization` contains placeholders for programs that import it."""

from rushlight.ao import quantization as quantization

__all__ = ["quantization"]
