"""`torch.sparse`: functions of sparse tensors."""

from rushlight_core.sparse import *  # noqa: F403
from rushlight_core.sparse import __all__ as __all__
