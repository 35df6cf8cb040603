"""Placeholders for libraries that check for data pipes. Data pipes are not supported."""
