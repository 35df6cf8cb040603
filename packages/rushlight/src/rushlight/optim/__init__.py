"""Optimizers, implemented in rushlight_nn.optim."""

import rushlight_nn.optim as _package
from rushlight_nn.optim import *  # noqa: F403

__all__ = list(_package.__all__)

TYPE_CHECKING = False  # with `__getattr__`, type checkers would accept any name
if TYPE_CHECKING:
    from rushlight.optim import lr_scheduler as lr_scheduler
    from rushlight.optim import swa_utils as swa_utils
else:
    from rushlight._wrapped import names_of

    __getattr__ = names_of(_package, __name__)
