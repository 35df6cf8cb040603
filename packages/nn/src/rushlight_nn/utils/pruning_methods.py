"""Pruning methods: classes that compute masks of parameters, and apply them before every forward pass."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable

import rushlight_core as core
from rushlight_core import Tensor

from ..module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
]


class BasePruningMethod(ABC):
    """The base class of pruning methods. An instance is also the forward pre-hook that applies the mask.

    A subclass defines `compute_mask(t, default_mask)`. The `PRUNING_TYPE` of the subclass selects the part of the tensor for
    which the mask is computed: the elements that are not yet pruned ("unstructured"), the channels along `dim` that are not
    yet pruned ("structured"), or the whole tensor ("global").

    Shape:
        - Parameter and mask: (*), the same shape.

    Raises:
        ValueError: the module has no parameter `name`, or the importance scores do not have the shape of the
            parameter (raised by `apply`).

    Example:
        >>> class PruneNegative(nn.utils.prune.BasePruningMethod):
        ...     def compute_mask(self, t, default_mask):
        ...         return default_mask * (t >= 0)
        >>> layer = nn.Linear(4, 2)
        >>> _ = PruneNegative.apply(layer, "weight")
        >>> bool((layer.weight >= 0).all())
        True
    """

    _tensor_name: str
    PRUNING_TYPE = "unstructured"

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask, which is zero where `t` is pruned. `default_mask` is the mask from earlier pruning."""

    def apply_mask(self, module: Module) -> Tensor:
        """Return the pruned tensor."""
        mask = getattr(module, f"{self._tensor_name}_mask")
        original = getattr(module, f"{self._tensor_name}_orig")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune the parameter `name` of `module`. Further arguments are passed to the constructor of the class.

        `importance_scores` is a tensor of the parameter's shape, from which the method chooses the elements or
        channels to prune. By default, the parameter itself is used.
        """
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        key, former = method_of(module, name)
        original = module._parameters.get(name)
        if former is None and original is None:
            raise ValueError(f"prune(name): {type(module).__name__} has no parameter {name!r}")
        tensor = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != tensor.shape:
            raise ValueError(
                f"prune(importance_scores): got shape {tuple(importance_scores.shape)}, needs {tuple(tensor.shape)}"
            )
        scores = (tensor if importance_scores is None else importance_scores).detach()
        hook = method
        if original is not None:
            mask = method.compute_mask(scores, core.ones_like(original.detach()))
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
            module.register_buffer(f"{name}_mask", mask)
        else:
            assert former is not None
            before = getattr(module, f"{name}_mask")
            container = former if isinstance(former, PruningContainer) else PruningContainer(former)
            container.add_pruning_method(method)
            mask = container.compute_mask(scores, before.to(scores.dtype))
            del module._forward_pre_hooks[key]
            setattr(module, f"{name}_mask", mask)
            hook = container
        setattr(module, name, hook.apply_mask(module))
        module.register_forward_pre_hook(hook)
        return hook

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """Return a pruned copy of `t`, a tensor that need not belong to a module."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise ValueError(
                f"prune(importance_scores): got shape {tuple(scores.shape)}, needs {tuple(t.shape)}"
            )
        mask = core.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the pruned tensor the parameter `name` again, and remove `name_orig` and `name_mask`."""
        name = self._tensor_name
        original = module._parameters[f"{name}_orig"]
        assert original is not None
        original.data = self.apply_mask(module).detach()
        delattr(module, name)
        del module._parameters[f"{name}_orig"], module._buffers[f"{name}_mask"]
        module.register_parameter(name, original)


def method_of(module: Module, name: str) -> tuple[int | None, BasePruningMethod | None]:
    """Return the key and the object of the forward pre-hook that prunes tensor `name`, or (None, None)."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None, None


class PruningContainer(BasePruningMethod):
    """A sequence of pruning methods. Each method prunes elements that the methods before it have not pruned.

    Args:
        args: pruning methods for one parameter, or an iterable of them.

    Shape:
        - Parameter and mask: (*), the same shape.

    Raises:
        TypeError: an argument is not a pruning method.
        ValueError: the methods prune different parameters, or the `PRUNING_TYPE` of a method is unknown.

    Example:
        >>> layer = nn.utils.prune.random_unstructured(nn.Linear(4, 2), "weight", amount=2)
        >>> layer = nn.utils.prune.l1_unstructured(layer, "weight", amount=2)
        >>> int(layer.weight_mask.sum())
        4
    """

    def __init__(self, *args: BasePruningMethod | Iterable[BasePruningMethod]) -> None:
        self._pruning_methods: list[BasePruningMethod] = []
        first = args[0] if args else ()
        methods = args if isinstance(first, BasePruningMethod) else tuple(first)
        if len(args) == 1 and isinstance(first, BasePruningMethod):
            self._tensor_name = first._tensor_name
            self._pruning_methods.append(first)
            return
        for method in methods:
            self.add_pruning_method(method)  # type: ignore[arg-type]

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a pruning method for the same tensor.

        Raises:
            TypeError: the argument is not a pruning method.
            ValueError: the method prunes a different tensor than this container.
        """
        if not isinstance(method, BasePruningMethod):
            raise TypeError(
                f"add_pruning_method(method): got {type(method).__name__}, needs a BasePruningMethod"
            )
        if not self._pruning_methods and not hasattr(self, "_tensor_name"):
            self._tensor_name = method._tensor_name
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                f"add_pruning_method(method): got a method for {method._tensor_name!r}, needs one for {self._tensor_name!r}"
            )
        self._pruning_methods.append(method)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Prune with the last method, and return the updated `default_mask` in the dtype of `t`."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype, copy=True)
        if method.PRUNING_TYPE == "unstructured":
            left: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim  # type: ignore[attr-defined]
            others = [d for d in range(t.dim()) if d != dim % t.dim()]
            kept = mask.sum(others) != 0 if others else mask != 0
            left = tuple(
                kept.nonzero().squeeze(1) if d == dim % t.dim() else slice(None) for d in range(t.dim())
            )
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.dim()
        else:
            raise ValueError(
                f"prune: PRUNING_TYPE of {type(method).__name__} is {method.PRUNING_TYPE!r}, needs 'unstructured', "
                "'structured' or 'global'"
            )
        mask[left] = method.compute_mask(t[left], default_mask=mask[left]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """A pruning method that prunes no element, and adds a mask of ones.

    Shape:
        - Parameter and mask: (*), the same shape.

    Example:
        >>> layer = nn.Linear(4, 2)
        >>> _ = nn.utils.prune.Identity.apply(layer, "weight")
        >>> int(layer.weight_mask.sum())  # elements that are left
        8
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:  # type: ignore[override]
        """Add a mask of ones to the parameter `name`."""
        return super().apply(module, name)


class RandomUnstructured(BasePruningMethod):
    """A pruning method that prunes elements at random.

    Args:
        amount: the number of elements to prune, as an int; or the fraction of the unpruned elements to prune,
            as a float from 0 to 1.

    Shape:
        - Parameter and mask: (*), the same shape.

    Raises:
        ValueError: `amount` is out of range.

    Example:
        >>> layer = nn.Linear(4, 2)
        >>> _ = nn.utils.prune.RandomUnstructured.apply(layer, "weight", amount=0.5)
        >>> int(layer.weight_mask.sum())  # elements that are left
        4
    """

    def __init__(self, amount: int | float) -> None:
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if count:
            chosen = core.rand(t.numel(), device=t.device).topk(count).indices
            mask.view(-1)[chosen] = 0
        return mask

    @classmethod
    def apply(cls, module: Module, name: str, amount: int | float) -> BasePruningMethod:  # type: ignore[override]
        """Prune elements of the parameter `name`."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(BasePruningMethod):
    """A pruning method that prunes the elements of smallest magnitude.

    Args:
        amount: the number of elements to prune, as an int; or the fraction of the unpruned elements to prune,
            as a float from 0 to 1.

    Shape:
        - Parameter and mask: (*), the same shape.

    Raises:
        ValueError: `amount` is out of range.

    Example:
        >>> layer = nn.Linear(4, 2)
        >>> _ = nn.utils.prune.L1Unstructured.apply(layer, "weight", amount=4)
        >>> int(layer.weight_mask.sum())  # elements that are left
        4
    """

    def __init__(self, amount: int | float) -> None:
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[t.abs().reshape(-1).topk(count, largest=False).indices] = 0
        return mask

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None
    ) -> BasePruningMethod:
        """Prune elements of the parameter `name`."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomStructured(BasePruningMethod):
    """A pruning method that prunes channels at random.

    Args:
        amount: the number of channels to prune, as an int; or the fraction of the unpruned channels to prune,
            as a float from 0 to 1.
        dim: the dimension of the channels.

    Shape:
        - Parameter and mask: (*), the same shape.

    Raises:
        ValueError: `amount` is out of range.

    Example:
        >>> layer = nn.Linear(4, 2)
        >>> _ = nn.utils.prune.RandomStructured.apply(layer, "weight", amount=1, dim=0)
        >>> int(layer.weight_mask.sum())  # elements that are left
        4
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _channels(self.amount, t, self.dim)
        return _without(t, self.dim, core.rand(t.shape[self.dim], device=t.device), count, default_mask)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: int | float, dim: int = -1
    ) -> BasePruningMethod:
        """Prune channels of the parameter `name`."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """A pruning method that prunes the channels of smallest norm.

    Args:
        amount: the number of channels to prune, as an int; or the fraction of the unpruned channels to prune,
            as a float from 0 to 1.
        n: order of the norm.
        dim: the dimension of the channels.

    Shape:
        - Parameter and mask: (*), the same shape.

    Raises:
        ValueError: `amount` is out of range.

    Example:
        >>> layer = nn.Linear(4, 2)
        >>> _ = nn.utils.prune.LnStructured.apply(layer, "weight", amount=1, n=2, dim=0)
        >>> int(layer.weight_mask.sum())  # elements that are left
        4
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, n: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _channels(self.amount, t, self.dim)
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return _without(t, self.dim, core.norm(t, p=self.n, dim=others), count, default_mask)

    @classmethod
    def apply(  # type: ignore[override]
        cls,
        module: Module,
        name: str,
        amount: int | float,
        n: Any,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> BasePruningMethod:
        """Prune channels of the parameter `name`."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """A pruning method that prunes the elements where a given mask is zero.

    Args:
        mask: a tensor of zeros and ones with the parameter's shape.

    Shape:
        - Parameter and mask: (*), the same shape.

    Raises:
        ValueError: the mask does not have the parameter's shape.

    Example:
        >>> layer = nn.Linear(2, 2)
        >>> _ = nn.utils.prune.CustomFromMask.apply(layer, "weight", mask=torch.tensor([[1, 0], [0, 1]]))
        >>> int(layer.weight_mask.sum())  # elements that are left
        2
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if self.mask.shape != default_mask.shape:
            raise ValueError(
                f"custom_from_mask(mask): got shape {tuple(self.mask.shape)}, needs {tuple(default_mask.shape)}"
            )
        return default_mask * self.mask.to(default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> BasePruningMethod:  # type: ignore[override]
        """Prune the elements of the parameter `name` where the mask is zero."""
        return super().apply(module, name, mask=mask)


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, numbers.Real) or isinstance(amount, bool):
        raise TypeError(f"prune(amount): got {amount!r}, needs a number")
    if not float(amount) >= 0 or (not isinstance(amount, numbers.Integral) and float(amount) > 1.0):
        raise ValueError(f"prune(amount): got {amount}, needs a float from 0 to 1 or a non-negative int")


def _count(amount: int | float, size: int) -> int:
    """Return how many of `size` elements or channels to prune."""
    count = int(amount) if isinstance(amount, numbers.Integral) else round(amount * size)
    if count > size:
        raise ValueError(
            f"prune(amount): got {amount}, needs at most {size}, the number of elements or channels that are not pruned yet"
        )
    return count


def _channels(amount: int | float, t: Tensor, dim: int) -> int:
    if t.dim() < 2:
        raise ValueError(
            f"prune: got a tensor of {t.dim()} dimensions, needs at least 2 to prune channels\n"
            "hint: use an unstructured method"
        )
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"prune(dim): got {dim}, out of range for a tensor of {t.dim()} dimensions")
    return _count(amount, t.shape[dim])


def _without(t: Tensor, dim: int, scores: Tensor, count: int, default_mask: Tensor) -> Tensor:
    """Return `default_mask` with the `count` channels of smallest score set to zero."""
    if not count:
        return default_mask
    mask = default_mask.clone()
    return mask.index_fill(dim, scores.topk(count, largest=False).indices, 0)
