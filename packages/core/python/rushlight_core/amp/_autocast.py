"""autocast: use a smaller dtype for matrix products, and float32 for operators that need more precision.

Note [Autocast]
Autocast is a stage of dispatch: while it is on in a thread, each call of an operator in this thread passes
through it before the stages that record gradients. For the operators in the list `SMALLER`, arguments of
dtype float32, float16 or bfloat16 are converted to the dtype of the autocast block. For the operators in the
list `FLOAT32`, arguments of smaller dtypes are converted to float32. All other operators compute as usual.
The conversions are operators, too: gradients flow back through them, and the gradient of a weight has the
dtype of the weight. A weight is converted once in each outermost block, even if it is used several times.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from .. import _C
from ..seams import stages

F = TypeVar("F", bound=Callable[..., Any])

# Products, which take most of the time; their kernels accumulate in float32.
SMALLER = frozenset((
    "linear", "matmul", "mm", "bmm", "addmm", "addbmm", "baddbmm", "linalg_vecdot", "conv1d", "conv2d",
    "conv3d", "convolution", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "prelu",
    "scaled_dot_product_attention", "lstm", "lstm_cell", "gru", "gru_cell", "rnn_tanh", "rnn_relu",
    "rnn_tanh_cell", "rnn_relu_cell",
))  # fmt: skip

# Operators whose results are sensitive to rounded arguments, or that have no kernel for small dtypes.
FLOAT32 = frozenset((
    "avg_pool3d", "adaptive_avg_pool3d", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "cdist", "cholesky", "cholesky_inverse", "cholesky_solve", "cosine_embedding_loss",
    "cross_entropy_loss", "ctc_loss", "grid_sampler", "hinge_embedding_loss", "huber_loss", "inverse",
    "kl_div", "l1_loss", "lu_solve", "margin_ranking_loss", "mse_loss", "multi_margin_loss",
    "multilabel_margin_loss", "nanquantile", "nll_loss", "orgqr", "ormqr", "pinverse", "poisson_nll_loss",
    "polar", "prod", "quantile", "smooth_l1_loss", "soft_margin_loss", "stft", "trace",
    "triplet_margin_loss", "view_as_complex",
))  # fmt: skip
_FAMILIES = ("fft_", "linalg_")  # all operators of these families too, except for _OTHERS
_OTHERS = frozenset((
    "linalg_vecdot", "linalg_vector_norm", "linalg_cross", "linalg_diagonal", "linalg_matrix_power",
    "linalg_multi_dot", "linalg_vander",
))  # fmt: skip

_DEVICES = ("cpu", "cuda")
_DTYPES = (_C.bfloat16, _C.float16)
_defaults: dict[str, Any] = {"cpu": _C.bfloat16, "cuda": _C.float16}


class _State(threading.local):
    """The state of autocast in a thread: devices, dtypes, the nesting depth of blocks, and converted weights."""

    def __init__(self) -> None:
        self.dtypes: dict[str, Any] = {}
        self.depth = 0
        self.cached = True
        self.weights: dict[int, tuple[Any, Any, int, Any]] = {}


_state = _State()
_provided = False


def _provide() -> None:
    global _provided
    if not _provided:
        stages.provide_stage("autocast", _stage)
        _provided = True


def _policy(name: str) -> bool | None:
    """Return True to convert arguments to the block's dtype, False to use float32, None to convert none."""
    base, _, overload = name.partition(".")
    if overload == "out" or base.endswith("_"):
        return None  # the caller has chosen the dtype of the result
    if base in SMALLER:
        return True
    return False if base in FLOAT32 or (base.startswith(_FAMILIES) and base not in _OTHERS) else None


def _stage(name: str, args: tuple[Any, ...], rest: int) -> Any:
    smaller = _policy(name)
    if smaller is not None:
        with stages.stage_off("autocast"):
            args = tuple(_converted(argument, smaller) for argument in args)
    return stages.go_on(rest, name, *args)


def _converted(value: Any, smaller: bool) -> Any:
    if isinstance(value, (list, tuple)):
        return (
            type(value)(_converted(item, smaller) for item in value)
            if any(isinstance(item, _C.Tensor) for item in value)
            else value
        )
    if not isinstance(value, _C.Tensor):
        return value
    dtype, small = value.dtype, _state.dtypes.get(value.device.type)
    if small is None or dtype not in (_C.float32, _C.bfloat16, _C.float16):
        return value
    wanted = small if smaller else _C.float32
    if dtype is wanted:
        return value
    # A weight that is converted while gradients are not recorded has no graph, so it must not be cached for later uses.
    if not (smaller and _state.cached and value.requires_grad and value.is_leaf and _C.is_grad_enabled()):
        return value.to(wanted)
    known = _state.weights.get(id(value))
    version = value._version
    if known is None or known[0] is not value or known[1] is not wanted or known[2] != version:
        known = _state.weights[id(value)] = (value, wanted, version, value.to(wanted))
    return known[3]


class _Block:
    """The base class of context managers that change this thread's settings of autocast inside of their block."""

    def __init__(self) -> None:
        self._before: list[tuple[dict[str, Any], bool, Any]] = []

    def _settings(self) -> tuple[dict[str, Any], bool]:
        """Return the dtype for each device type within the block, and whether converted weights are cached."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        state = _state
        dtypes, cached = self._settings()
        scope = None
        if dtypes and not state.dtypes:
            _provide()
            scope = stages.stage_on("autocast")
        self._before.append((state.dtypes, state.cached, scope))
        state.dtypes, state.cached = dtypes, cached
        state.depth += 1
        if scope is not None:
            scope.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        state = _state
        state.dtypes, state.cached, scope = self._before.pop()
        state.depth -= 1
        if not state.depth:
            state.weights.clear()
        if scope is not None:
            scope.__exit__(None, None, None)


class CurrentAutocast(_Block):
    """A context manager that restores the settings that autocast had when this object was created.

    `checkpoint` uses this context manager to recompute a function with the same dtypes::

        with autocast("cpu"):
            settings = CurrentAutocast()
        with settings:
            output = function(*inputs)  # computed as inside of autocast("cpu")
    """

    def __init__(self) -> None:
        super().__init__()
        self._stored = _state.dtypes, _state.cached

    def _settings(self) -> tuple[dict[str, Any], bool]:
        return self._stored


class autocast(_Block):  # noqa: N801
    """Context manager and decorator for mixed precision, which computes matrix products in a smaller dtype.

    Parameters and their gradients stay float32. Call backward outside of the block::

        with autocast("cpu", dtype=bfloat16):
            loss = loss_function(model(input), target)
        loss.backward()

    Args:
        device_type: the type of device whose tensors are converted, "cpu" or "cuda".
        dtype: bfloat16 or float16; by default bfloat16 on the CPU, and float16 on GPUs.
        enabled: whether autocast is on; False turns it off, even inside another block.
        cache_enabled: whether to convert each weight only once in the outermost block, and to reuse the
            converted weight.

    Raises:
        ValueError: `device_type` is not a str.
        RuntimeError: autocast does not support `device_type`.
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(device_type, str):
            raise ValueError(
                f"autocast(device_type): got {type(device_type).__name__}, needs 'cpu' or 'cuda'"
            )
        if device_type not in _DEVICES:
            raise RuntimeError(f"autocast(device_type): got {device_type!r}, needs 'cpu' or 'cuda'")
        self.device = device_type
        self.fast_dtype: Any = _defaults[device_type] if dtype is None else dtype
        if enabled and device_type == "cuda" and not _C._device_count("cuda"):
            warnings.warn("autocast('cuda') does nothing: there is no GPU", UserWarning, stacklevel=2)
            enabled = False
        if enabled and self.fast_dtype not in _DTYPES:
            warnings.warn(
                f"autocast(dtype): {self.fast_dtype} has no effect; use bfloat16 or float16",
                UserWarning,
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._cached = True if cache_enabled is None else cache_enabled

    def _settings(self) -> tuple[dict[str, Any], bool]:
        others = {device: dtype for device, dtype in _state.dtypes.items() if device != self.device}
        return {**others, self.device: self.fast_dtype} if self._enabled else others, self._cached

    def __call__(self, func: F) -> F:
        @wraps(func)
        def within(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return within  # type: ignore[return-value]


def is_autocast_available(device_type: str) -> bool:
    """Return whether autocast supports tensors on a type of device.

    Args:
        device_type: the type of device.

    Example:
        >>> torch.amp.is_autocast_available("cpu")
        True
    """
    return device_type in _DEVICES


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return whether autocast is on in this thread.

    Args:
        device_type: the type of device; "cuda" by default.

    Example:
        >>> with torch.autocast("cpu"):
        ...     torch.is_autocast_enabled("cpu")
        True
    """
    return (device_type or "cuda") in _state.dtypes


def get_autocast_dtype(device_type: str) -> Any:
    """Return the dtype to which autocast converts in this thread: the enclosing block's dtype, or autocast's default.

    Args:
        device_type: the type of device.

    Example:
        >>> torch.get_autocast_dtype("cpu")
        torch.bfloat16
    """
    return _state.dtypes.get(device_type, _default(device_type))


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Set the default dtype of autocast blocks.

    Args:
        device_type: the type of device.
        dtype: the dtype.

    Example:
        >>> torch.set_autocast_dtype("cpu", torch.bfloat16)
    """
    _default(device_type)
    _defaults[device_type] = dtype


def _default(device_type: str) -> Any:
    if device_type not in _DEVICES:
        raise RuntimeError(f"autocast: got device_type {device_type!r}, needs 'cpu' or 'cuda'")
    return _defaults[device_type]


# --- functions with a custom gradient ---


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Decorate `forward` of a Function, so that `backward` runs with the same autocast settings (see :func:`custom_bwd`).

    Args:
        fwd: the function; if None, a decorator is returned.
        device_type: the type of device whose autocast settings are used.
        cast_inputs: the dtype to which all floating-point arguments except float64 are converted while
            autocast is on; after this conversion, `forward` runs with autocast off. By default, arguments are
            not converted.

    Example:
        >>> class Product(torch.autograd.Function):
        ...     @staticmethod
        ...     @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        ...     def forward(ctx, a, b):
        ...         ctx.save_for_backward(a, b)
        ...         return a @ b
        ...
        ...     @staticmethod
        ...     @torch.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         a, b = ctx.saved_tensors
        ...         return grad @ b.T, a.T @ grad
        >>> with torch.autocast("cpu"):
        ...     Product.apply(torch.ones(2, 2), torch.ones(2, 2)).dtype
        torch.float32
    """
    if fwd is None:
        return lambda function: custom_fwd(function, device_type=device_type, cast_inputs=cast_inputs)

    @wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        on = is_autocast_enabled(device_type)
        args[0]._autocast_dtype = get_autocast_dtype(device_type) if on and cast_inputs is None else None
        if not on or cast_inputs is None:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                *(_to(value, cast_inputs, device_type) for value in args),
                **{name: _to(value, cast_inputs, device_type) for name, value in kwargs.items()},
            )

    return forward


def _to(value: Any, dtype: Any, device_type: str) -> Any:
    if isinstance(value, _C.Tensor):
        fits = (
            value.is_floating_point() and value.dtype is not _C.float64 and value.device.type == device_type
        )
        return value.to(dtype) if fits else value
    if isinstance(value, dict):
        return {key: _to(item, dtype, device_type) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_to(item, dtype, device_type) for item in value)
    return value


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorate `backward` of a Function so that it runs with the autocast settings of `forward` (see :func:`custom_fwd`).

    Args:
        bwd: the function; if None, a decorator is returned.
        device_type: the type of device whose autocast settings are used.

    Example:
        >>> decorate = torch.amp.custom_bwd(device_type="cpu")  # see custom_fwd
    """
    if bwd is None:
        return lambda function: custom_bwd(function, device_type=device_type)

    @wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        dtype = args[0]._autocast_dtype
        with autocast(device_type, dtype=dtype, enabled=dtype is not None):
            return bwd(*args, **kwargs)

    return backward
