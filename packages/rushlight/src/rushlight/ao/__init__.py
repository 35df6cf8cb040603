"""Quantisation of models is not supported. `ao.quantization` has the classes that programs check for."""

from rushlight.ao import quantization as quantization

__all__ = ["quantization"]
