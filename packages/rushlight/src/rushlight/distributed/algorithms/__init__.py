"""Parts for modules over several processes: communication hooks, and the context for uneven inputs."""
