"""Weight normalisation by a hook that computes the weight before every forward pass (the older interface)."""

from __future__ import annotations

from rushlight_core import Tensor

from ..parameter import Parameter, is_lazy
from .norms import norm_except

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from ..module import Module

    M = TypeVar("M", bound=Module)


class WeightNorm:
    """A hook that sets `name` to g · v / |v|, where g and v are the parameters `name_g` and `name_v`."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = dim

    def compute_weight(self, module: Any) -> Tensor:
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / norm_except(v, self.dim))

    def __call__(self, module: Module, args: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Compute a weight from its norm and direction in a hook before every forward pass (Salimans and Kingma 2016).

    The norm and the direction are the parameters `name_g` and `name_v`.
    :func:`rushlight_nn.utils.parametrizations.weight_norm` does the same without a hook, and computes the
    weight whenever it is read. `utils.weight_norm` exists for programs and state dicts that use the names
    `name_g` and `name_v`.

    Args:
        module: the module, which is returned.
        name: the name of the parameter.
        dim: the tensor has a separate norm for each index of this dimension; None selects one norm for the
            whole tensor.

    Raises:
        ValueError: the parameter does not exist, or has no shape yet.
        RuntimeError: the parameter is already normalised.

    Example:
        >>> layer = nn.utils.weight_norm(nn.Linear(20, 40))
        >>> layer.weight_g.shape, layer.weight_v.shape
        (torch.Size([40, 1]), torch.Size([40, 20]))
    """
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm) and hook.name == name:
            raise RuntimeError(
                f"weight_norm(name): {name!r} of {type(module).__name__} is already normalised"
            )
    weight = module._parameters.get(name)
    if weight is None:
        raise ValueError(f"weight_norm(name): {type(module).__name__} has no parameter {name!r}")
    if is_lazy(weight):
        raise ValueError(
            f"weight_norm(name): {name!r} has no shape yet\nhint: call the module once before weight_norm()"
        )
    hook = WeightNorm(name, dim)
    del module._parameters[name]
    values = weight.detach()
    module.register_parameter(f"{name}_g", Parameter(norm_except(values, dim)))
    module.register_parameter(f"{name}_v", Parameter(values))
    hook(module, None)
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make a weight an ordinary parameter again, with its current value.

    Args:
        module: the module, which is returned.
        name: the name of the parameter.

    Raises:
        ValueError: :func:`weight_norm` was not applied to the parameter.

    Example:
        >>> layer = nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Linear(20, 40)))
        >>> sorted(layer.state_dict())
        ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            value = hook.compute_weight(module).detach()
            delattr(module, name)
            del module._parameters[f"{name}_g"], module._parameters[f"{name}_v"]
            module.register_parameter(name, Parameter(value))
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"remove_weight_norm(name): {name!r} of {type(module).__name__} is not normalised")
