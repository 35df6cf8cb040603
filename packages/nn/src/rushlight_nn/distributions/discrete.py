"""Distributions of whole numbers and choices."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from ..functional import binary_cross_entropy_with_logits
from .distribution import Distribution, broadcast_all, logits_to_probs, probs_to_logits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


class _Chances(Distribution):
    """Distributions whose parameter is given as probabilities or as their logits; the other is computed when asked."""

    _names: ClassVar[tuple[str, ...]] = ("probs", "logits")
    _binary = True
    probs: Tensor
    logits: Tensor

    def _given(self, probs: Any, logits: Any) -> Tensor:
        if (probs is None) == (logits is None):
            raise ValueError(
                f"{type(self).__name__}(probs, logits): got {'neither' if probs is None else 'both'}, needs one of them"
            )
        return probs if logits is None else logits

    def __getattr__(self, name: str) -> Any:
        # Only what is not there yet comes here.
        if name == "probs" and "logits" in self.__dict__:
            value = self.__dict__["probs"] = logits_to_probs(self.logits, self._binary)
        elif name == "logits" and "probs" in self.__dict__:
            value = self.__dict__["logits"] = probs_to_logits(self.probs, self._binary)
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return value

    @property
    def param_shape(self) -> Any:
        """The parameter's shape."""
        return self._param.shape

    @property
    def _param(self) -> Tensor:
        if "probs" in self.__dict__:
            return self.__dict__["probs"]
        return self.logits

    def __repr__(self) -> str:
        given = "probs" if "probs" in self.__dict__ else "logits"
        value = self._param
        return f"{type(self).__name__}({given}: {value.item() if value.numel() == 1 else value.size()})"


class Bernoulli(_Chances):
    """One with probability `probs`, else zero; `logits` are the log-odds.

    Raises:
        ValueError: not exactly one of them is given, or a probability is not between 0 and 1.
    """

    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        (given,) = broadcast_all(self._given(probs, logits))
        super().__init__(given.shape, (), validate_args)
        if logits is None:
            self.probs = given
            self._check("probs", (given >= 0) & (given <= 1), "numbers between 0 and 1")
        else:
            self.logits = given

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        half = core.full_like(self.probs, float("nan"))
        return core.where(self.probs == 0.5, half, (self.probs > 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with core.no_grad():
            return core.bernoulli(self.probs.expand(self._shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check("value", (value == 0) | (value == 1), "zeros and ones")
        logits, value = core.broadcast_tensors(self.logits, value.to(self._param.dtype))
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = core.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(2, *(1 for _ in self._batch_shape))
        return values.expand(2, *self._batch_shape) if expand else values


class Geometric(_Chances):
    """How often one fails before the first success, of probability `probs`; `logits` are its log-odds.

    Raises:
        ValueError: not exactly one of them is given, or a probability is not in (0, 1].
    """

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        (given,) = broadcast_all(self._given(probs, logits))
        super().__init__(given.shape, (), validate_args)
        if logits is None:
            self.probs = given
            self._check("probs", (given > 0) & (given <= 1), "numbers above 0, at most 1")
        else:
            self.logits = given

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return core.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with core.no_grad():
            tiny = core.finfo(self.probs.dtype).tiny
            u = core.rand(self._shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
            return (u.clamp(min=tiny).log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check("value", (value >= 0) & (value == value.floor()), "whole numbers of at least 0")
        probs = core.where((self.probs == 1) & (value == 0), 0.0, self.probs)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Categorical(_Chances):
    """A choice of 0 to K - 1 by `probs` (..., K), which are divided by their sum, or `logits`, of any sum.

    Raises:
        ValueError: not exactly one of them is given, it has no dimension, or a probability is negative.
    """

    has_enumerate_support = True
    _event_dims: ClassVar[dict[str, int]] = {"probs": 1, "logits": 1}
    _binary = False

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given = self._given(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"{type(self).__name__}(probs, logits): got no dimension, needs one of choices")
        super().__init__(given.shape[:-1], (), validate_args)
        if logits is None:
            self._check("probs", given >= 0, "numbers of at least 0")
            self.probs = given / given.sum(-1, keepdim=True)
        else:
            self.logits = given - given.logsumexp(-1, keepdim=True)

    @property
    def _num_events(self) -> int:
        return self._param.shape[-1]

    @property
    def mean(self) -> Tensor:
        return core.full(self._batch_shape, float("nan"), dtype=self._param.dtype, device=self._param.device)

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self._param.argmax(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        count = 1
        for size in sample_shape:
            count *= size
        with core.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = core.multinomial(rows, count, True).mT
        return drawn.reshape((*sample_shape, *self._batch_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        fits = (
            (value >= 0)
            & (value < self._num_events)
            & (value == value.floor() if value.is_floating_point() else True)
        )
        self._check("value", fits, f"whole numbers from 0 to {self._num_events - 1}")
        shape = core.broadcast_shapes(value.shape, self._batch_shape)
        logits = self.logits.expand(*shape, self._num_events)
        return logits.gather(-1, value.to(core.int64).expand(shape).unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        # What never happens adds nothing, though its logarithm is infinite.
        logits = self.logits.clamp(min=core.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = core.arange(self._num_events, device=self._param.device)
        values = values.reshape(-1, *(1 for _ in self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class OneHotCategorical(Distribution):
    """As :class:`Categorical`, over vectors of K with a one where the choice is.

    Raises:
        ValueError: as there.
    """

    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self._categorical.logits

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        made = super().expand(batch_shape)
        made._categorical = self._categorical.expand(batch_shape)
        return made

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, index: Tensor) -> Tensor:
        like = core.zeros(
            (*index.shape, self._event_shape[0]), dtype=self.probs.dtype, device=self.probs.device
        )
        return like.scatter_(-1, index.unsqueeze(-1), 1.0)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(
            "value", ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1), "vectors with a single one"
        )
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        size = self._event_shape[0]
        values = core.eye(size, dtype=self.probs.dtype, device=self.probs.device)
        values = values.reshape(size, *(1 for _ in self._batch_shape), size)
        return values.expand(size, *self._batch_shape, size) if expand else values

    def __repr__(self) -> str:
        return repr(self._categorical).replace("Categorical", "OneHotCategorical", 1)


class Poisson(Distribution):
    """How often something happens that happens `rate` times on the average.

    Raises:
        ValueError: a rate is negative.
    """

    _names: ClassVar[tuple[str, ...]] = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)
        self._check("rate", self.rate >= 0, "numbers of at least 0")

    @property
    def mean(self) -> Tensor:
        return self.rate

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with core.no_grad():
            return core.poisson(self.rate.expand(self._shape(sample_shape)).contiguous())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check("value", (value >= 0) & (value == value.floor()), "whole numbers of at least 0")
        return core.xlogy(value, self.rate) - self.rate - (value + 1).lgamma()
