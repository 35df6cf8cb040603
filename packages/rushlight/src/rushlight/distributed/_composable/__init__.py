"""Names of functions that change modules in place for several processes, which are absent."""
