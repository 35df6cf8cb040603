"""Operators whose arguments are functions, under PyTorch's module paths."""

# Importing a submodule binds its name, so the functions of the same names are imported afterwards.
from rushlight._higher_order_ops.associative_scan import associative_scan
from rushlight._higher_order_ops.cond import cond
from rushlight._higher_order_ops.scan import scan
from rushlight._higher_order_ops.while_loop import while_loop

__all__ = ["associative_scan", "cond", "scan", "while_loop"]
