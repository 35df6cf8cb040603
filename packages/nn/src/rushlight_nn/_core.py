"""Access to core's operators by name.

Note [No typing at run time]
The module `typing` takes as long to import as this whole package. Annotations are not evaluated, so that it
is only imported where they are checked.
"""

from __future__ import annotations

from collections.abc import Callable

import rushlight_core as core

from ._typing import Any


def operator(name: str) -> Callable[..., Any]:
    """Return core's operator `name`.

    An operator that the installed core does not have is replaced by a function that raises when it is
        called: a
    layer that is not used must not keep the package from being imported.
    """
    found = getattr(core, name, None)
    if found is not None:
        return found

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{name}: the installed rushlight-core {getattr(core, '__version__', '')} has no such operator\n"
            "hint: upgrade rushlight-core, or write the layer with operators it has"
        )

    missing.__name__ = missing.__qualname__ = name
    return missing
