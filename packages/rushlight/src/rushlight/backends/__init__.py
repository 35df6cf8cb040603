"""What computes: programs ask whether a library is there, and switch parts of it.

Questions are answered as things are. Two switches choose: `mkldnn.enabled` and those of attention (`cuda.enable_math_sdp`
and its kin). Of everything else there is one way of computing on a device: those switches are kept and change nothing.
"""

from __future__ import annotations

from rushlight.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
