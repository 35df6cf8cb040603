"""Pruning of parameters, which sets some of their elements to zero: `rushlight.nn.utils.prune`.

A pruned parameter `name` is replaced by a parameter `name_orig` and a buffer `name_mask` of zeros and ones. The attribute
`name` is the product of `name_orig` and `name_mask`, and is computed before every forward pass. Pruning the parameter again
sets further elements of the mask to zero.
"""

from __future__ import annotations

from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from ..module import Module
from .pruning_methods import (
    BasePruningMethod,
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
    method_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    M = TypeVar("M", bound=Module)


def identity(module: M, name: str) -> M:
    """Add a mask of ones to a parameter, without pruning any element.

    Args:
        module: the module, which is returned.
        name: the name of the parameter.

    Shape:
        - Parameter and mask: (*), the same shape.

    Raises:
        ValueError: the parameter does not exist.

    Example:
        >>> layer = nn.utils.prune.identity(nn.Linear(4, 2), "weight")
        >>> int(layer.weight_mask.sum())  # elements that are left
        8
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: M, name: str, amount: int | float) -> M:
    """Prune elements of a parameter at random.

    Args:
        module: the module, which is returned.
        name: the name of the parameter.
        amount: the number of elements to prune, as an int; or the fraction of the unpruned elements to prune,
            as a float from 0 to 1.

    Shape:
        - Parameter and mask: (*), the same shape.

    Raises:
        ValueError: the parameter does not exist, or `amount` is out of range.

    Example:
        >>> layer = nn.utils.prune.random_unstructured(nn.Linear(4, 2), "weight", amount=0.5)
        >>> int(layer.weight_mask.sum())  # elements that are left
        4
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: M, name: str, amount: int | float, importance_scores: Tensor | None = None) -> M:
    """Prune the elements of a parameter that have the smallest magnitude.

    Args:
        module: the module, which is returned.
        name: the name of the parameter.
        amount: the number of elements to prune, as an int; or the fraction of the unpruned elements to prune,
            as a float from 0 to 1.
        importance_scores: a tensor of the parameter's shape. The elements to prune are chosen by its values instead of the
            parameter's values.

    Shape:
        - Parameter and mask: (*), the same shape.

    Raises:
        ValueError: the parameter does not exist, or `amount` is out of range.

    Example:
        >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(4, 2), "weight", amount=4)
        >>> int(layer.weight_mask.sum())  # elements that are left
        4
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: M, name: str, amount: int | float, dim: int) -> M:
    """Prune channels of a parameter at random.

    Args:
        module: the module, which is returned.
        name: the name of the parameter.
        amount: the number of channels to prune, as an int; or the fraction of the unpruned channels to prune,
            as a float from 0 to 1.
        dim: the dimension of the channels.

    Shape:
        - Parameter and mask: (*), the same shape.

    Raises:
        ValueError: the parameter does not exist, or `amount` is out of range.

    Example:
        >>> layer = nn.utils.prune.random_structured(nn.Linear(4, 2), "weight", amount=1, dim=0)
        >>> int(layer.weight_mask.sum())  # elements that are left
        4
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: M, name: str, amount: int | float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> M:
    """Prune the channels of a parameter that have the smallest norm.

    Args:
        module: the module, which is returned.
        name: the name of the parameter.
        amount: the number of channels to prune, as an int; or the fraction of the unpruned channels to prune,
            as a float from 0 to 1.
        n: order of the norm.
        dim: the dimension of the channels.
        importance_scores: a tensor of the parameter's shape. The channels to prune are chosen by its values instead of the
            parameter's values.

    Shape:
        - Parameter and mask: (*), the same shape.

    Raises:
        ValueError: the parameter does not exist, or `amount` is out of range.

    Example:
        >>> layer = nn.utils.prune.ln_structured(nn.Linear(4, 2), "weight", amount=1, n=2, dim=0)
        >>> int(layer.weight_mask.sum())  # elements that are left
        4
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: M, name: str, mask: Tensor) -> M:
    """Prune the elements of a parameter where a mask is zero.

    Args:
        module: the module, which is returned.
        name: the name of the parameter.
        mask: a tensor of zeros and ones with the parameter's shape.

    Shape:
        - Parameter and mask: (*), the same shape.

    Raises:
        ValueError: the module has no parameter `name`, or the mask does not have the shape of the parameter.

    Example:
        >>> layer = nn.utils.prune.custom_from_mask(nn.Linear(2, 2), "weight", mask=torch.tensor([[1, 0], [0, 1]]))
        >>> int(layer.weight_mask.sum())  # elements that are left
        2
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune elements of several parameters, chosen among the elements of all parameters together.

    Args:
        parameters: pairs of a module and the name of a parameter.
        pruning_method: a class of pruning methods whose `PRUNING_TYPE` is "unstructured".
        importance_scores: a dictionary from pairs in `parameters` to tensors of the parameters' shapes. The elements to
            prune are chosen by the values of these tensors instead of the parameters' values.
        kwargs: arguments of the pruning method class.

    Shape:
        - Importance scores: the parameter's shape.

    Raises:
        TypeError: an item of `parameters` is not a pair, `importance_scores` is not a dictionary, or the `PRUNING_TYPE` of
            `pruning_method` is not "unstructured".

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
        >>> pairs = [(model[0], "weight"), (model[1], "weight")]
        >>> nn.utils.prune.global_unstructured(pairs, nn.utils.prune.L1Unstructured, amount=0.5)
        >>> int(model[0].weight_mask.sum() + model[1].weight_mask.sum())  # half of 16 + 4
        10
    """
    pairs = list(parameters)
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise TypeError("global_unstructured(parameters): needs pairs of a module and a name")
    if importance_scores is not None and not isinstance(importance_scores, dict):
        raise TypeError(
            f"global_unstructured(importance_scores): got {type(importance_scores).__name__}, needs a dict"
        )
    if not pairs:
        return
    given = importance_scores or {}
    scores = core.cat([given.get(pair, getattr(*pair)).detach().reshape(-1) for pair in pairs])
    masks = core.cat([_mask_of(*pair).reshape(-1) for pair in pairs])
    container = PruningContainer()
    container._tensor_name = "together"
    method = pruning_method(**kwargs)
    method._tensor_name = "together"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f"global_unstructured(pruning_method): got {pruning_method.__name__} of type {method.PRUNING_TYPE}, "
            "needs 'unstructured'"
        )
    container.add_pruning_method(method)
    final, start = container.compute_mask(scores, masks), 0
    for module, name in pairs:
        tensor = getattr(module, name)
        custom_from_mask(module, name, final[start : start + tensor.numel()].reshape(tensor.shape))
        start += tensor.numel()


def _mask_of(module: Module, name: str) -> Tensor:
    mask = getattr(module, f"{name}_mask", None)
    return core.ones_like(getattr(module, name).detach()) if mask is None else mask


def remove(module: M, name: str) -> M:
    """Make a pruned tensor an ordinary parameter again, with its current value.

    Args:
        module: the module, which is returned.
        name: the name of the parameter.

    Raises:
        ValueError: the parameter is not pruned.

    Example:
        >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(4, 2), "weight", amount=4)
        >>> sorted(nn.utils.prune.remove(layer, "weight").state_dict())
        ['bias', 'weight']
    """
    key, method = method_of(module, name)
    if method is None:
        raise ValueError(f"remove(name): {name!r} of {type(module).__name__} is not pruned")
    method.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module: Module) -> bool:
    """Return whether a parameter of a module or of one of its submodules is pruned.

    Args:
        module: the module.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 2))
        >>> before = nn.utils.prune.is_pruned(model)
        >>> _ = nn.utils.prune.l1_unstructured(model[0], "weight", amount=4)
        >>> before, nn.utils.prune.is_pruned(model)
        (False, True)
    """
    hooks = (hook for child in module.modules() for hook in child._forward_pre_hooks.values())
    return any(isinstance(hook, BasePruningMethod) for hook in hooks)


__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]
