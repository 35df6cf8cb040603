"""Utilities, under PyTorch's names: `utils.data`, `utils.checkpoint`, `utils.dlpack`, `utils.hooks`."""

from rushlight.utils import checkpoint, data, dlpack, hooks

__all__ = ["checkpoint", "data", "dlpack", "hooks"]

TYPE_CHECKING = False  # with `__getattr__`, type checkers would accept any name
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in (
            "_python_dispatch",
            "_pytree",
            "benchmark",
            "collect_env",
            "cpp_extension",
            "deterministic",
            "model_zoo",
            "module_tracker",
            "weak",
        ):
            from importlib import import_module

            return import_module(f"rushlight.utils.{name}")
        raise AttributeError(f"module 'rushlight.utils' has no attribute {name!r}")
