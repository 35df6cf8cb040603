"""Values while a program is traced, by the file that PyTorch has them in: there are none."""

from rushlight.fx import Proxy

__all__ = ["Proxy"]
