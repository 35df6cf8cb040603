"""Which function computes the divergence of which classes."""

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
    """Decorates the function that computes the divergence of two classes of distributions.

    Raises:
        TypeError: they are no such classes.
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type):  # bases of other libraries, too, which theirs derive from
            raise TypeError(f"register_kl: got {kind!r}, needs classes")

    def keep(function: F) -> F:
        _registry[type_p, type_q] = function
        return function

    return keep


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the divergence of `q` from `p`, KL(p ‖ q), in nats: (batch_shape).

    Raises:
        NotImplementedError: nobody said how, for two such distributions.
    """
    for left in type(p).__mro__:
        for right in type(q).__mro__:
            function = _registry.get((left, right))
            if function is not None:
                return function(p, q)
    raise NotImplementedError(
        f"kl_divergence: not known of {type(p).__name__} and {type(q).__name__}\nhint: register_kl says how"
    )
