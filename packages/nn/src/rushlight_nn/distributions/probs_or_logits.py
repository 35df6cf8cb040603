"""The base class of distributions whose parameter is `probs` or `logits`."""

from __future__ import annotations

from rushlight_core import Size, Tensor

from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, probs_to_logits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ProbsOrLogits(Distribution):
    """Base class of distributions with a parameter `probs` or `logits`.

    The parameter that is not given is computed on first access. If `_binary` is true, logits are log-odds;
    otherwise they are the logarithms of probabilities that sum to 1.
    """

    _binary = True

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.__dict__["logits"], self._binary)

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds of binary probabilities, or the logarithms of probabilities that sum to 1."""
        return probs_to_logits(self.__dict__["probs"], self._binary)

    def _given(self, probs: Any, logits: Any) -> tuple[str, Any]:
        """Return the name and the value of the argument that is not None."""
        if (probs is None) == (logits is None):
            given = "neither" if probs is None else "both"
            raise ValueError(f"{type(self).__name__}(probs, logits): exactly one must be given, got {given}")
        return ("probs", probs) if logits is None else ("logits", logits)

    def _set_categories(self, probs: Any, logits: Any) -> tuple[int, ...]:
        """Normalize the given argument of shape (..., K) over its K categories, store it, and return its shape."""
        name, value = self._given(probs, logits)
        if value.dim() < 1:
            raise ValueError(f"{type(self).__name__}({name}): must be at least 1-dimensional, got a scalar")
        if name == "probs":
            value = value / value.sum(-1, keepdim=True)
        else:
            value = value - value.logsumexp(-1, keepdim=True)
        self.__dict__[name] = value
        return value.shape

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]

    @property
    def param_shape(self) -> Size:
        """The shape of `probs` and `logits`."""
        return self._param.size()
