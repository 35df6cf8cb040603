"""Quantisation of models: not there. `ao.quantization` has the classes that programs ask about."""

from rushlight.ao import quantization as quantization

__all__ = ["quantization"]
