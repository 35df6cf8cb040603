"""Parameters that are given as probabilities or as their logits."""

from __future__ import annotations

from rushlight_core import Size, Tensor

from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, probs_to_logits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Chances(Distribution):
    """Distributions of `probs` or `logits`; the other is computed when it is asked for.

    Of `_binary` ones the logits are log-odds, of others the logarithms of probabilities that sum to 1.
    """

    _binary = True

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.__dict__["logits"], self._binary)

    @lazy_property
    def logits(self) -> Tensor:
        """Their log-odds or logarithms."""
        return probs_to_logits(self.__dict__["probs"], self._binary)

    def _given(self, probs: Any, logits: Any) -> tuple[str, Any]:
        """The name of the one that is given, and its value."""
        if (probs is None) == (logits is None):
            raise ValueError(
                f"{type(self).__name__}(probs, logits): got {'neither' if probs is None else 'both'}, needs one of them"
            )
        return ("probs", probs) if logits is None else ("logits", logits)

    def _set_choices(self, probs: Any, logits: Any) -> tuple[int, ...]:
        """Set the one that is given, (..., K), so that the K probabilities sum to 1; its shape."""
        name, value = self._given(probs, logits)
        if value.dim() < 1:
            raise ValueError(f"{type(self).__name__}({name}): got no dimension, needs one of choices")
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
        """The parameter's shape."""
        return self._param.size()
