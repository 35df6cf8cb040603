"""How tensors are sent: rushlight_multiprocessing.reductions."""

from rushlight_multiprocessing.reductions import init_reductions, reduce_tensor

__all__ = ["init_reductions", "reduce_tensor"]
