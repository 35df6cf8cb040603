"""Spectral normalisation by a hook that computes the weight before every forward pass (the older interface)."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import Tensor

from ..functional import normalize
from ..layers.conv_transpose import _TransposedConvolution
from ..parameter import Parameter, is_lazy
from .norms import power_iteration, rows_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from ..module import Module

    M = TypeVar("M", bound=Module)


class SpectralNorm:
    """A hook that sets `name` to the parameter `name_orig` divided by its largest singular value.

    The buffers `name_u` and `name_v` contain estimates of the singular vectors for this singular value.
    """

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        if n_power_iterations <= 0:
            raise ValueError(f"spectral_norm(n_power_iterations): got {n_power_iterations}, needs at least 1")
        self.name = name
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = rows_of(weight, self.dim)
        if do_power_iteration:
            better = power_iteration(matrix.detach(), u, v, self.n_power_iterations, self.eps, v_first=True)
            with core.no_grad():
                u.copy_(better[0])
                v.copy_(better[1])
        # Copy the buffers, because another forward pass may change them before the backward pass of this one.
        return weight / core.dot(u.clone(), core.mv(matrix, v.clone()))

    def __call__(self, module: Module, args: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divide a weight by its largest singular value in a hook before every forward pass (Miyato et al. 2018).

    :func:`rushlight_nn.utils.parametrizations.spectral_norm` does the same without a hook.
    `utils.spectral_norm` exists for programs and state dicts that use the names `name_orig`, `name_u` and
    `name_v`.

    Args:
        module: the module, which is returned.
        name: the name of the parameter.
        n_power_iterations: number of power iterations in every forward pass in training mode.
        eps: lower limit of the norms by which vectors are divided.
        dim: the dimension that forms the rows of the matrix; the other dimensions form the columns. The
            default is 1 for transposed convolutions, and 0 for other modules.

    Raises:
        ValueError: the parameter does not exist or has no shape yet, or `n_power_iterations` is not positive.
        RuntimeError: the parameter is already normalised.

    Example:
        >>> layer = nn.utils.spectral_norm(nn.Linear(20, 40))
        >>> sorted(layer.state_dict())
        ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            raise RuntimeError(
                f"spectral_norm(name): {name!r} of {type(module).__name__} is already normalised"
            )
    weight = module._parameters.get(name)
    if weight is None:
        raise ValueError(f"spectral_norm(name): {type(module).__name__} has no parameter {name!r}")
    if is_lazy(weight):
        raise ValueError(
            f"spectral_norm(name): {name!r} has no shape yet\nhint: call the module once before "
            "spectral_norm()"
        )
    if dim is None:
        dim = 1 if isinstance(module, _TransposedConvolution) else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    values = weight.detach()
    u, v = (
        normalize(core.randn(size, dtype=values.dtype, device=values.device), dim=0, eps=eps)
        for size in rows_of(values, dim).shape
    )
    del module._parameters[name]
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, values)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make a weight an ordinary parameter again, with its current value.

    Args:
        module: the module, which is returned.
        name: the name of the parameter.

    Raises:
        ValueError: :func:`spectral_norm` was not applied to the parameter.

    Example:
        >>> layer = nn.utils.remove_spectral_norm(nn.utils.spectral_norm(nn.Linear(20, 40)))
        >>> sorted(layer.state_dict())
        ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            with core.no_grad():
                value = hook.compute_weight(module, do_power_iteration=False)
            for part in ("", "_u", "_v", "_orig"):
                delattr(module, f"{name}{part}")
            module.register_parameter(name, Parameter(value.detach()))
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"remove_spectral_norm(name): {name!r} of {type(module).__name__} is not normalised")
