"""The setting `fill_uninitialized_memory`, which is False: new memory is not filled."""

from __future__ import annotations

import sys
import warnings
from types import ModuleType

__all__ = ["fill_uninitialized_memory"]

fill_uninitialized_memory: bool


class _Setting(ModuleType):
    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *__all__})

    @property
    def fill_uninitialized_memory(self) -> bool:
        return False

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if mode:
            warnings.warn(
                "utils.deterministic.fill_uninitialized_memory: the memory of `empty` and similar functions is not filled",
                stacklevel=2,
            )


sys.modules[__name__].__class__ = _Setting
