"""The check of gradients, under PyTorch's module path; loaded when it is first used."""

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

TYPE_CHECKING = False  # a checker would take every name for one that is there
if TYPE_CHECKING:
    from rushlight_autograd import GradcheckError, gradcheck, gradgradcheck
else:
    from rushlight._wrapped import names_of
    from rushlight_core import autograd as _package

    __getattr__ = names_of(_package)
