"""Automatic differentiation for rushlight: importing this package attaches it to rushlight-core.

Afterwards tensors have `backward`, `grad_fn` and hooks, and operators on tensors that require grad are recorded.
"""

import sys

import rushlight_autograd.batching  # noqa: F401  (tells core how batched tensors look)
import rushlight_core as _core  # first: it loads librushlight, which this package's library needs
from rushlight_autograd import anomaly_mode, checkpoint, forward_ad, functional, graph
from rushlight_autograd._C import FunctionCtx
from rushlight_autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from rushlight_autograd.backward import backward, grad
from rushlight_autograd.function import Function
from rushlight_autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from rushlight_autograd.graph import Node
from rushlight_autograd.threads import parallel_branches, set_multithreading_enabled
from rushlight_autograd.variable import Variable

# Where the packages that build on core look for a provider of gradients.
_core.autograd = sys.modules[__name__]  # type: ignore[attr-defined]

enable_grad = _core.enable_grad
inference_mode = _core.inference_mode
no_grad = _core.no_grad
set_grad_enabled = _core.set_grad_enabled
is_grad_enabled = _core.is_grad_enabled

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


TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight_autograd._alive import WhyAlive as WhyAlive
    from rushlight_autograd._alive import why_alive as why_alive


def __getattr__(name: str) -> object:
    if name in ("WhyAlive", "why_alive"):  # seldom asked for
        from rushlight_autograd import _alive

        return getattr(_alive, name)
    if name == "__version__":
        from importlib.metadata import version

        return version("rushlight-autograd")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
