"""Base classes of passes."""
