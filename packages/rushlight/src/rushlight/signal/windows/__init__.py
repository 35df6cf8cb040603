"""Window functions, implemented in rushlight_core.signal.windows."""

import rushlight_core.signal.windows as _package
from rushlight_core.signal.windows import *  # noqa: F403

__all__ = list(_package.__all__)

TYPE_CHECKING = False  # with `__getattr__`, type checkers would accept any name
if not TYPE_CHECKING:
    from rushlight._wrapped import names_of

    __getattr__ = names_of(_package, __name__)
