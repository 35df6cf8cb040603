"""Import packages that only some datasets need."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["require"]


def require(module: str, user: str, extra: str) -> Any:
    """Import and return a module.

    If the package of the module is not installed, raise a ModuleNotFoundError that names the package to
    install.

    Arguments:
        module: name of the module.
        user: the name by which the error refers to the caller.
        extra: the extra of this package that installs the module.

    Example:
        >>> require("json", "a test", "none").dumps([1])
        '[1]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name not in (package, module):
            raise
        raise ModuleNotFoundError(
            f"{user} needs the package {package}, which is not installed\n"
            f"Install it with pip install 'rushlight-data[{extra}]'.",
            name=package,
        ) from None
