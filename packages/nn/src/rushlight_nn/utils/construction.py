"""Creation of modules whose parameters are not initialised."""

from __future__ import annotations

from collections.abc import Callable

from ..module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    M = TypeVar("M", bound=Module)


def skip_init(module_cls: Callable[..., M], *args: Any, **kwargs: Any) -> M:
    """Return ``module_cls(*args, **kwargs)`` without initialising its parameters, for example to load a state dict next.

    The module is created on the `meta` device, where initialisation takes no time. Its tensors are then
    allocated on the final device, with arbitrary values.

    Args:
        module_cls: a class of modules with an argument `device`, which it must use for all of its tensors.
        args, kwargs: the arguments of the class. `device` is the final device of the module.

    Raises:
        RuntimeError: `module_cls` is not a subclass of `Module`, or has no argument `device`.

    Example:
        >>> layer = nn.utils.skip_init(nn.Linear, 2, 3)
        >>> _ = layer.load_state_dict(nn.Linear(2, 3).state_dict())
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"skip_init(module_cls): got {module_cls!r}, needs a class of modules")
    import inspect  # takes long to import

    parameters = inspect.signature(module_cls).parameters
    if "device" not in parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        raise RuntimeError(f"skip_init(module_cls): {module_cls.__name__} has no argument 'device'")
    wanted = kwargs.pop("device", None)
    make: Any = module_cls
    return make(*args, **kwargs, device="meta").to_empty(device="cpu" if wanted is None else wanted)
