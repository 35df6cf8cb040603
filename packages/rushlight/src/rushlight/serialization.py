"""`save` and `load`, and the classes that files may refer to, under PyTorch's module path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight_nn.serialization import (
    CheckpointError,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    get_unsafe_globals_in_checkpoint,
    load,
    safe_globals,
    save,
)

__all__ = [
    "CheckpointError",
    "SourceChangeWarning",
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
]

DEFAULT_PROTOCOL = 2


class SourceChangeWarning(Warning):
    """The class of PyTorch's warnings about modules whose source has changed, for programs that filter them.

    No function issues this warning, because files contain no source code.

    Example:
        >>> import warnings
        >>> warnings.filterwarnings("ignore", category=torch.serialization.SourceChangeWarning)
    """


MAP_LOCATION = Callable[..., Any] | str | dict[str, str] | None
