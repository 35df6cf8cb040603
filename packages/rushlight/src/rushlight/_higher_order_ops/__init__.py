"""Operators that take functions, by the files that PyTorch has them in."""

# The functions are imported after the modules of the same names, which they replace.
from rushlight._higher_order_ops.associative_scan import associative_scan
from rushlight._higher_order_ops.cond import cond
from rushlight._higher_order_ops.scan import scan
from rushlight._higher_order_ops.while_loop import while_loop

__all__ = ["associative_scan", "cond", "scan", "while_loop"]
