"""Placeholders for data pipes, which are not supported, for libraries that check for them."""
