"""Parts of the loader, in the files in which PyTorch has them."""

from rushlight.utils.data._utils import collate as collate
from rushlight.utils.data._utils import worker as worker

__all__ = ["collate", "worker"]
