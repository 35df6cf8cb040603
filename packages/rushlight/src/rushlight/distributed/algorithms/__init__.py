"""Names of what goes with modules over several processes, and is absent."""
