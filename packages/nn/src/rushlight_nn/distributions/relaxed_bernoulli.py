"""Relaxed Bernoulli distributions."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight_core import Tensor

from ..functional import softplus
from . import constraints
from .probs_or_logits import ProbsOrLogits
from .relaxed import Relaxed
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs, open_uniform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The distribution of the logits of :class:`RelaxedBernoulli` variables.

    The samples are logistic variables with location `logits`, divided by the temperature (Maddison, Mnih and Teh 2017).

    Args:
        temperature: the temperature; samples move towards minus or plus infinity as the temperature decreases.
        probs: the probability, from 0 to 1.
        logits: ``log(probs / (1 - probs))``, given instead of `probs`.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: both or neither of `probs` and `logits` are given, or a probability is not between 0 and 1.

    Example:
        >>> from rushlight.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
        >>> LogitRelaxedBernoulli(torch.tensor(0.5), probs=torch.tensor([0.2, 0.7])).sample().shape
        torch.Size([2])
    """

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: Any = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        name, given = self._given(probs, logits)
        (self.__dict__[name],) = broadcast_all(given)
        super().__init__(self.param_shape, validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = open_uniform(shape, self._param)
        probs = clamp_probs(self.probs.expand(shape))
        noise = u.log() - (-u).log1p() + probs.log() - (-probs).log1p()
        return noise / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        apart = self.logits - self.temperature * value
        return _log(self.temperature) + apart - 2 * softplus(apart)


def _log(temperature: Any) -> Any:
    (tensor,) = broadcast_all(temperature)
    return tensor.log()


class RelaxedBernoulli(Relaxed):
    """A relaxation of the Bernoulli distribution: numbers between 0 and 1 that depend smoothly on `probs`.

    This distribution is also called the concrete distribution (Maddison, Mnih and Teh 2017; Jang, Gu and Poole 2017).

    Args:
        temperature: the temperature; samples approach 0 or 1 as the temperature decreases.
        probs: the probability, from 0 to 1.
        logits: ``log(probs / (1 - probs))``, given instead of `probs`.
        validate_args: whether to check the arguments; true by default, unless Python runs with -O.

    Shape:
        - Parameters: (*), numbers or tensors that broadcast; their common shape is the batch shape.
        - Samples: (*sample_shape, *batch_shape).

    Raises:
        ValueError: both or neither of `probs` and `logits` are given, or a probability is not between 0 and 1.

    Example:
        >>> from rushlight.distributions import RelaxedBernoulli
        >>> sample = RelaxedBernoulli(torch.tensor(0.5), probs=torch.tensor([0.2, 0.7])).rsample()
        >>> bool(((sample > 0) & (sample < 1)).all())
        True
    """

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
