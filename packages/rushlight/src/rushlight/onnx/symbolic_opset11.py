"""Placeholder for a module that libraries import. The export of an operator is defined in its YAML entry."""
