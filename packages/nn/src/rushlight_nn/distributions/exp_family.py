"""Exponential families."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import Tensor

from .distribution import Distribution
from .utils import sum_rightmost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """The base class of distributions with the density ``h(x) · exp(t(x) · θ - F(θ))``.

    A subclass defines the natural parameters θ (`_natural_params`), the function F (`_log_normalizer`) and the mean of
    log h(x) (`_mean_carrier_measure`). The entropy is computed from the gradient of F (Nielsen and Nock 2010). Computing
    this gradient requires rushlight-autograd, or another autograd provider.

    Shape:
        - The same as for :class:`Distribution`.

    Raises:
        RuntimeError: no autograd provider is installed (raised when an entropy or divergence is computed).

    Example:
        >>> from rushlight.distributions import ExponentialFamily, Gamma
        >>> issubclass(Gamma, ExponentialFamily)
        True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise self._lacks("_natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise self._lacks("_log_normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise self._lacks("_mean_carrier_measure")

    def entropy(self) -> Tensor:
        """Return the entropy in nats, a tensor of shape `batch_shape`."""
        carrier = self._mean_carrier_measure
        params, normalizer, gradients = normalizer_with_gradients(self)
        result = normalizer - carrier
        for param, gradient in zip(params, gradients, strict=True):
            result = result - sum_rightmost(param * gradient, len(self.event_shape))
        return result


def normalizer_with_gradients(p: ExponentialFamily) -> tuple[list[Tensor], Tensor, tuple[Tensor, ...]]:
    """Return θ, F(θ) and the gradient of F at θ, all differentiable with respect to the distribution's parameters."""
    provider: Any = getattr(core, "autograd", None)
    if not hasattr(provider, "grad"):
        raise RuntimeError(
            f"{type(p).__name__}: entropies and divergences need gradients, and no autograd provider is installed\n"
            "hint: pip install rushlight-autograd"
        )
    with core.enable_grad():
        params = [q if q.requires_grad else q.detach().requires_grad_() for q in p._natural_params]
        normalizer = p._log_normalizer(*params)
        gradients = provider.grad(normalizer.sum(), params, create_graph=True)
    return params, normalizer, gradients
