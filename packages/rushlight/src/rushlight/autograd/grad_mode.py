"""Switches of recording, by the file that PyTorch has them in."""

from rushlight_autograd import set_multithreading_enabled
from rushlight_core import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]
