"""Functions that compare tensors and create samples for tests, implemented in rushlight_testing."""

import rushlight_testing as _package
from rushlight_testing import *  # noqa: F403

__all__ = list(_package.__all__)

TYPE_CHECKING = False  # with `__getattr__`, type checkers would accept any name
if not TYPE_CHECKING:
    from rushlight._wrapped import names_of

    __getattr__ = names_of(_package)
