"""Placeholder for a module that libraries import. The entries of operators define how they are exported."""
