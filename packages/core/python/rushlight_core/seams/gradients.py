"""The interface of packages that provide gradients, such as rushlight-autograd.

A provider is a module that adds gradients to rushlight_core when it is imported. The module adds stages to
the dispatch of operators, stores state on tensors (see rushlight_core.seams.stages, or rushlight/dispatch.h
for C++), and sets the attribute `rushlight_core.autograd` to itself. Packages that build on rushlight_core
use `grad`, `backward` and `Function` of this attribute. `DistributedDataParallel` of rushlight-nn also needs
`Variable._execution_engine.queue_callback(callback)`, which calls a function at the end of the running
backward pass. A provider is installed as an entry point of the group "rushlight.autograd".
"""

from __future__ import annotations

from types import ModuleType

import rushlight_core

__all__ = ["GROUP", "VARIABLE", "attach_provider"]

GROUP = "rushlight.autograd"
VARIABLE = "RUSHLIGHT_AUTOGRAD"  # names a provider to use instead of rushlight-autograd


def attach_provider(name: str) -> ModuleType:
    """Import the provider that is installed under a name, and return its module.

    Args:
        name: the name of an entry point of the group `rushlight.autograd`.

    Raises:
        ImportError: no provider is installed under the name.
        RuntimeError: the process already has another provider.

    Example::

        autograd = attach_provider("default")  # rushlight_autograd
    """
    from importlib.metadata import entry_points

    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        raise ImportError(
            f"{VARIABLE}={name}: no provider of gradients is installed under that name\n"
            f"hint: installed are {', '.join(sorted(points)) or 'none; pip install rushlight-autograd'}"
        )
    points[name].load()
    attached: ModuleType = rushlight_core.autograd  # type: ignore[attr-defined]
    return attached
