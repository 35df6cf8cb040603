"""Functions that check gradients, under PyTorch's module path. The functions are imported when they are first used."""

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

TYPE_CHECKING = False  # with `__getattr__`, type checkers would accept any name
if TYPE_CHECKING:
    from rushlight_autograd import GradcheckError, gradcheck, gradgradcheck
else:
    from rushlight._wrapped import names_of
    from rushlight_core import autograd as _package

    __getattr__ = names_of(_package)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
