"""Communication hooks: functions that reduce the gradients of a `DistributedDataParallel` module."""

from . import debugging_hooks, default_hooks, powerSGD_hook

__all__ = ["debugging_hooks", "default_hooks", "powerSGD_hook"]
