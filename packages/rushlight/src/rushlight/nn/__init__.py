"""Layers, implemented in rushlight_nn."""

import rushlight_nn as _package
from rushlight_nn import *  # noqa: F403

__all__ = list(_package.__all__)

TYPE_CHECKING = False  # with `__getattr__`, type checkers would accept any name
if TYPE_CHECKING:
    from rushlight.nn import attention as attention
    from rushlight.nn import common_types as common_types
    from rushlight.nn import grad as grad
    from rushlight.nn import modules as modules
    from rushlight.nn import parallel as parallel
    from rushlight.nn import parameter as parameter
    from rushlight.nn import utils as utils
else:
    from rushlight._wrapped import names_of

    def __getattr__(name: str) -> object:
        if name in ("attention", "common_types", "grad", "modules", "parallel", "utils"):
            from importlib import import_module

            return import_module(f"rushlight.nn.{name}")
        return names_of(_package)(name)
