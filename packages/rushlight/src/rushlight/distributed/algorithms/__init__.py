"""Communication hooks for modules over several processes, and the context manager for uneven inputs."""
