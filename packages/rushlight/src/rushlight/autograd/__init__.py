"""Automatic differentiation, implemented in rushlight_autograd or in another package that the user selected."""

TYPE_CHECKING = False  # with `__getattr__`, type checkers would accept any name
if TYPE_CHECKING:
    import rushlight_autograd as _package
    from rushlight.autograd import function as function
    from rushlight.autograd import profiler as profiler
    from rushlight_autograd import *  # noqa: F403

    __all__ = list(_package.__all__)
else:
    from rushlight_core import autograd as _package

    __all__ = list(_package.__all__)

    from importlib import import_module as _import_module

    from rushlight._wrapped import load_namesakes, names_of

    def __getattr__(name: str) -> object:
        if name in ("anomaly_mode", "function", "grad_mode", "profiler", "variable"):
            return _import_module(f"rushlight.autograd.{name}")
        return names_of(_package)(name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

    load_namesakes(__name__, "gradcheck")
