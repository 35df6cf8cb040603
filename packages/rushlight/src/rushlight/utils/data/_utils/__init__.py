"""Parts of the loader, under PyTorch's module paths."""

from rushlight.utils.data._utils import collate as collate
from rushlight.utils.data._utils import worker as worker

__all__ = ["collate", "worker"]
