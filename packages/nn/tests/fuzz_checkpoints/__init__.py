"""Fuzzing of checkpoints: reading any file ends soon, needs little memory, and gives a value or `CheckpointError`."""
