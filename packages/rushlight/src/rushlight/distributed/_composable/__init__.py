"""Placeholders for functions that prepare modules in place for several processes. They are not supported."""
