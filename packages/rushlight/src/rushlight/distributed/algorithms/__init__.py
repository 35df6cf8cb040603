"""Communication hooks for `DistributedDataParallel`, and the context manager `Join` for uneven inputs."""
