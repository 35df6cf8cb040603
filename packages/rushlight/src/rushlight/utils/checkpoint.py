"""Checkpointing: rushlight_autograd.checkpoint."""

from rushlight_autograd.checkpoint import (
    CheckpointError,
    DefaultDeviceType,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
    set_device_states,
)

__all__ = [
    "CheckpointError",
    "DefaultDeviceType",
    "checkpoint",
    "checkpoint_sequential",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]
