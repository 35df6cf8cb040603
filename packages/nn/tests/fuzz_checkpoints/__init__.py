"""Mutated checkpoints: whatever a file holds, reading it ends soon, in little memory, with a value or `CheckpointError`."""
