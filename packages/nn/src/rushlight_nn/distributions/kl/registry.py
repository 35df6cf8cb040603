"""A registry of functions that compute divergences, one for each pair of distribution classes."""

from __future__ import annotations

from collections.abc import Callable

from rushlight_core import Tensor

from ..distribution import Distribution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Tensor])

_registry: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[F], F]:
    """Return a decorator that registers a function as the divergence of two classes of distributions.

    Args:
        type_p: class of the first distribution.
        type_q: class of the second distribution.

    Raises:
        TypeError: an argument is not a class.

    Example:
        >>> from rushlight.distributions import kl_divergence, Normal
        >>> from rushlight.distributions.kl import register_kl
        >>> class Fixed(Normal):
        ...     pass
        >>> @register_kl(Fixed, Fixed)
        ... def _(p, q):
        ...     return torch.zeros(p.batch_shape)
        >>> kl_divergence(Fixed(0.0, 1.0), Fixed(5.0, 1.0))
        tensor(0.)
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type):  # base classes of other libraries need not derive from Distribution
            raise TypeError(f"register_kl: got {kind!r}, needs classes")

    def keep(function: F) -> F:
        _registry[type_p, type_q] = function
        return function

    return keep


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the Kullback-Leibler divergence KL(p ‖ q) of two distributions, in nats.

    Args:
        p: the first distribution.
        q: the second distribution.

    Shape:
        - Output: the batch shape.

    Raises:
        NotImplementedError: no function is registered for the classes of `p` and `q`.

    Example:
        >>> from rushlight.distributions import kl_divergence, Normal
        >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
        tensor(0.5000)
    """
    for left in type(p).__mro__:
        for right in type(q).__mro__:
            function = _registry.get((left, right))
            if function is not None:
                return function(p, q)
    raise NotImplementedError(
        f"kl_divergence: not implemented for {type(p).__name__} and {type(q).__name__}\n"
        "hint: register an implementation with register_kl"
    )
