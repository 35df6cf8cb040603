"""Automatic differentiation for rushlight. Importing the package enables it for rushlight-core's tensors.

After the import, tensors have `backward`, `grad_fn` and hooks, and operators on tensors that require grad are recorded.
"""

import sys

import rushlight_core as _core  # first, because it loads librushlight, which this package needs
from rushlight_autograd._C import FunctionCtx
from rushlight_core import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled

# Packages that depend on core find the provider of gradients under this name.
_core.autograd = sys.modules[__name__]  # type: ignore[attr-defined]


TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from rushlight_autograd import anomaly_mode as anomaly_mode
    from rushlight_autograd import checkpoint as checkpoint
    from rushlight_autograd import forward_ad as forward_ad
    from rushlight_autograd import functional as functional
    from rushlight_autograd import graph as graph
    from rushlight_autograd._alive import WhyAlive as WhyAlive
    from rushlight_autograd._alive import why_alive as why_alive
    from rushlight_autograd._backward import backward as backward
    from rushlight_autograd._backward import grad as grad
    from rushlight_autograd._gradcheck import GradcheckError as GradcheckError
    from rushlight_autograd._gradcheck import gradcheck as gradcheck
    from rushlight_autograd._gradcheck import gradgradcheck as gradgradcheck
    from rushlight_autograd.anomaly_mode import detect_anomaly as detect_anomaly
    from rushlight_autograd.anomaly_mode import set_detect_anomaly as set_detect_anomaly
    from rushlight_autograd.function import Function as Function
    from rushlight_autograd.graph import Node as Node
    from rushlight_autograd.threads import parallel_branches as parallel_branches
    from rushlight_autograd.threads import set_multithreading_enabled as set_multithreading_enabled
    from rushlight_autograd.variable import Variable as Variable

# Names that are imported on first use, each with its module. A module never has the same name as an object in it, because
# importing the module would replace the attribute of that name.
_MODULES = ("anomaly_mode", "checkpoint", "forward_ad", "functional", "graph")
_ELSEWHERE = {
    "Function": "function",
    "GradcheckError": "_gradcheck",
    "Node": "graph",
    "Variable": "variable",
    "WhyAlive": "_alive",
    "backward": "_backward",
    "detect_anomaly": "anomaly_mode",
    "grad": "_backward",
    "gradcheck": "_gradcheck",
    "gradgradcheck": "_gradcheck",
    "parallel_branches": "threads",
    "set_detect_anomaly": "anomaly_mode",
    "set_multithreading_enabled": "threads",
    "why_alive": "_alive",
}

__all__ = [
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "Node",
    "Variable",
    "WhyAlive",
    "anomaly_mode",
    "backward",
    "checkpoint",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "parallel_branches",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "why_alive",
]

if not TYPE_CHECKING:  # with a module __getattr__, type checkers would accept any name

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name in _ELSEWHERE:
            value = globals()[name] = getattr(import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
            return value
        if name == "__version__":
            from importlib.metadata import version

            return version("rushlight-autograd")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
