"""The loader, by the file that PyTorch has it in."""

from rushlight_data import (
    DataLoader,
    default_collate,
    default_convert,
    get_worker_info,
)
from rushlight_data.iterators import LoaderIterator as _BaseDataLoaderIter  # noqa: F401  by the names that programs import
from rushlight_data.iterators import SerialIterator as _SingleProcessDataLoaderIter  # noqa: F401
from rushlight_data.iterators import WorkersIterator as _MultiProcessingDataLoaderIter  # noqa: F401

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
