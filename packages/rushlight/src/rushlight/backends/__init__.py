"""What computes: programs ask whether a library is there, and switch parts of it.

There is one way of computing on a device, so that the switches are kept and change nothing; questions are answered as
things are.
"""

from __future__ import annotations

from rushlight.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
