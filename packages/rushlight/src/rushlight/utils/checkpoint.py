"""Checkpointing: rushlight_autograd.checkpoint."""

from rushlight_autograd.checkpoint import (
    CheckpointError,
    DefaultDeviceType,
    checkpoint,
    checkpoint_sequential,
    get_device_states,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
    set_device_states,
)

__all__ = [
    "CheckpointError",
    "DefaultDeviceType",
    "checkpoint",
    "checkpoint_sequential",
    "get_device_states",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]
