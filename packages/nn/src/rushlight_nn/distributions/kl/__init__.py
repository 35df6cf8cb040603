"""The Kullback-Leibler divergence of two distributions."""

from __future__ import annotations

from . import crossed, infinite, joint, same_family  # noqa: F401  (they register their formulas)
from .registry import kl_divergence, register_kl

__all__ = ["kl_divergence", "register_kl"]
