"""Settings for the conversion and loading of modules: `torch.__future__`."""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_overwrite = False
_swap = False


def get_overwrite_module_params_on_conversion() -> bool:
    """Return whether conversions of modules, such as `to`, create new parameters.

    Example:
        >>> torch.__future__.get_overwrite_module_params_on_conversion()
        False
    """
    return _overwrite


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set whether conversions of modules, such as `to`, create new parameters and leave the previous ones unchanged.

    Args:
        value: True to create new parameters, or False (the default) to keep the parameter objects. While
            :func:`set_swap_module_params_on_conversion` is on, conversions always keep the parameter objects.

    Example:
        >>> layer = nn.Linear(2, 2)
        >>> weight = layer.weight
        >>> torch.__future__.set_overwrite_module_params_on_conversion(True)
        >>> layer.double().weight is weight
        False
        >>> torch.__future__.set_overwrite_module_params_on_conversion(False)
    """
    global _overwrite
    _overwrite = value


def get_swap_module_params_on_conversion() -> bool:
    """Return whether `load_state_dict(assign=True)` keeps the parameter and buffer objects of a module.

    Example:
        >>> torch.__future__.get_swap_module_params_on_conversion()
        False
    """
    return _swap


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Set whether `load_state_dict(assign=True)` keeps the parameter and buffer objects of a module.

    If the setting is on, `load_state_dict` calls `Tensor.module_load` of each parameter and buffer with the tensor in the
    state, and sets the `data` of the parameter or buffer to the result. An optimizer that was created before
    `load_state_dict(assign=True)` therefore continues to update the module. The gradients of the parameters become None.

    Args:
        value: True to keep the objects, or False (the default) to replace them.

    Example:
        >>> layer, state = nn.Linear(2, 2), nn.Linear(2, 2).double().state_dict()
        >>> weight = layer.weight
        >>> torch.__future__.set_swap_module_params_on_conversion(True)
        >>> layer.load_state_dict(state, assign=True)
        <All keys matched successfully>
        >>> (layer.weight is weight, weight.dtype)
        (True, torch.float64)
        >>> torch.__future__.set_swap_module_params_on_conversion(False)
    """
    global _swap
    _swap = value
