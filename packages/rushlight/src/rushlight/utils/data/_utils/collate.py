"""Collation of samples, under PyTorch's module path."""

import re

from rushlight_data.collate import collate, default_collate, default_collate_fn_map, default_convert

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

#: The kinds of NumPy arrays that do not become tensors.
np_str_obj_array_pattern = re.compile(r"[SaUO]")
