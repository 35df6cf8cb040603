"""torch.compile, in a separate file because its name hides Python's `compile`.

See docs/decisions/0023-compile-is-the-identity.md.
"""

from __future__ import annotations

import warnings

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

_warned = False


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """Return `model` unchanged: rushlight has no compiler, and programs run in the same way with and without this call.

    The first call issues a warning. The names of parameters do not change; in PyTorch they get the prefix `_orig_mod.`.

    Args:
        model: a module or function; without it, a decorator is returned.
        fullgraph, dynamic, backend, mode, options, name, recompile_limit, isolate_recompiles, shapes_spec: accepted for
            compatibility; have no effect.
        disable: whether to suppress the warning.

    Raises:
        TypeError: `model` is not callable.
        RuntimeError: both `mode` and `options` are given.

    Example:
        >>> compiled = torch.compile(torch.sin)
        >>> compiled is torch.sin
        True
    """
    global _warned
    if model is None:
        return lambda found: compile(found, mode=mode, options=options, disable=disable)
    if not callable(model):
        raise TypeError(f"compile(model): must be a module or a function, not {type(model).__name__}")
    if mode is not None and options is not None:
        raise RuntimeError("compile(mode, options): must not both be given")
    if not disable and not _warned:
        _warned = True
        warnings.warn("compile() returns the model as it is: there is no compiler", UserWarning, stacklevel=2)
    return model
