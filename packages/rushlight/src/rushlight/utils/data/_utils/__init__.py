"""Parts of the loader, by the files that PyTorch has them in."""

from rushlight.utils.data._utils import collate as collate
from rushlight.utils.data._utils import worker as worker

__all__ = ["collate", "worker"]
