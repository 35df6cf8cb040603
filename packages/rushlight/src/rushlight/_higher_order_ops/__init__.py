"""Operators that take functions, by the files that PyTorch has them in."""
