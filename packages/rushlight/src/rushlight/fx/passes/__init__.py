"""Passes over the graphs of `fx`."""

from __future__ import annotations

from rushlight.fx.passes import shape_prop, split_module

__all__ = ["shape_prop", "split_module"]
