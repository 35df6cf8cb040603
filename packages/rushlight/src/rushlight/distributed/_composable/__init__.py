"""Placeholders for functions that change modules in place for several processes, which are not supported."""
