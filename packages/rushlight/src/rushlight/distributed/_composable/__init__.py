"""Names of what changes modules in place for several processes, which is absent."""
