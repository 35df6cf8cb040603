"""The loader, by the file that PyTorch has it in."""

from rushlight_data import (
    DataLoader,
    default_collate,
    default_convert,
    get_worker_info,
)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
