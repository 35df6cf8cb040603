"""Passes over the graphs of `fx`."""

from __future__ import annotations

from rushlight.fx.passes import operator_support, shape_prop, split_module, split_utils, tools_common

__all__ = ["operator_support", "shape_prop", "split_module", "split_utils", "tools_common"]
