"""Interfaces that core declares and other packages implement, so that these packages do not import each other."""
