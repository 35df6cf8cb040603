"""Interfaces that core declares and other packages implement, which do not import one another."""
