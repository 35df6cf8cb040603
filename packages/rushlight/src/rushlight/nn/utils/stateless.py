"""Calling a module with other parameters than its own, by the older name of `rushlight.func.functional_call`."""

from rushlight_nn.utils.stateless import functional_call

__all__ = ["functional_call"]
