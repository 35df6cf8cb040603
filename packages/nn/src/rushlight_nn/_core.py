"""Access to core's operators by name.

Note [No typing at run time]
Importing the module `typing` takes as long as importing this whole package. Annotations are not evaluated at run time, so
only type checkers import `typing`.
"""

from __future__ import annotations

from collections.abc import Callable

import rushlight_core as core

from ._typing import Any


def operator(name: str) -> Callable[..., Any]:
    """Return core's operator `name`.

    If the installed core lacks the operator, return a function that raises an error when it is called. The
    package can therefore be imported even if some of its layers cannot be used with the installed core.
    """
    found = getattr(core, name, None)
    if found is not None:
        return found

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{name}: the installed rushlight-core {getattr(core, '__version__', '')} has no such operator\n"
            "hint: upgrade rushlight-core, or write the layer with other operators"
        )

    missing.__name__ = missing.__qualname__ = name
    return missing
