"""Attention."""

from __future__ import annotations

from .._core import operator

scaled_dot_product_attention = operator("scaled_dot_product_attention")
