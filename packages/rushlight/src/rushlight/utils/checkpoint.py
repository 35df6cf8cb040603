"""Checkpointing: rushlight_autograd.checkpoint."""

from rushlight_autograd.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential"]
