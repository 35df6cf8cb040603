"""What probability distributions share."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Size, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self

_validate = __debug__


class Distribution:
    """Base of distributions: `batch_shape` independent ones, each over tensors of `event_shape`.

    A subclass names its parameters in `_names`, with the dimensions of one of them in `_event_dims`, calls `_set` with
    their values, and defines `log_prob` and `rsample` or `sample`.

    Args:
        batch_shape, event_shape: as above.
        validate_args: whether arguments are checked; so they are, unless Python runs with -O.
    """

    has_rsample = False
    has_enumerate_support = False
    _names: ClassVar[tuple[str, ...]] = ()
    _event_dims: ClassVar[dict[str, int]] = {}

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        self._validate_args = _validate if validate_args is None else validate_args

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether arguments are checked where a distribution does not say."""
        global _validate
        if not isinstance(value, bool):
            raise ValueError(f"set_default_validate_args(value): got {type(value).__name__}, needs a bool")
        _validate = value

    def _check(self, name: str, fits: Tensor, needs: str) -> None:
        """Raise ValueError unless all of `fits` are true: of a parameter, or of a value."""
        if self._validate_args and not bool(fits.all()):
            raise ValueError(
                f"{type(self).__name__}({name}): needs {needs}; {int((~fits).sum())} elements are not"
            )

    @property
    def batch_shape(self) -> Size:
        """The shape of the distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one of them."""
        return self._event_shape

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """The same distributions, repeated to `batch_shape`; their parameters are views."""
        made: Any = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        Distribution.__init__(made, batch_shape, self._event_shape, self._validate_args)
        for name in self._names:
            value = self.__dict__.get(name)
            if value is not None:
                dims = self._event_dims.get(name, 0)
                setattr(made, name, value.expand((*batch_shape, *value.shape[value.dim() - dims :])))
        return made

    def _shape(self, sample_shape: Sequence[int] = ()) -> tuple[int, ...]:
        """The shape of samples."""
        return (*sample_shape, *self._batch_shape, *self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples (*sample_shape, *batch_shape, *event_shape) through which gradients reach the parameters."""
        raise NotImplementedError(
            f"{type(self).__name__}.rsample(): samples do not depend smoothly on the parameters\nhint: sample()"
        )

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples (*sample_shape, *batch_shape, *event_shape), without a gradient."""
        with core.no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """`sample((n,))`."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability of `value`, which broadcasts."""
        raise self._lacks("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        raise self._lacks("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """What is not exceeded with probability `value`."""
        raise self._lacks("icdf")

    def entropy(self) -> Tensor:
        """The entropy, in nats: (batch_shape)."""
        raise self._lacks("entropy")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values there are, along a first dimension."""
        raise self._lacks("enumerate_support")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise self._lacks("mean")

    @property
    def mode(self) -> Tensor:
        """The likeliest value."""
        raise self._lacks("mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise self._lacks("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def _lacks(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not define {name}")

    def __repr__(self) -> str:
        parts = []
        for name in self._names:
            value = self.__dict__.get(name)
            if value is not None:
                parts.append(f"{name}: {value.item() if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(parts)})"


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers take the dtype of the tensors, or the default one."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    for value in values:
        if not isinstance(value, (Tensor, numbers.Number)):
            raise ValueError(f"got {type(value).__name__}, needs numbers and tensors")
    like: dict[str, Any] = {"dtype": core.get_default_dtype()}
    if tensors:
        like = {"dtype": tensors[0].dtype, "device": tensors[0].device}
    return tuple(
        core.broadcast_tensors(*(v if isinstance(v, Tensor) else core.tensor(v, **like) for v in values))
    )


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logarithms of probabilities, or the log-odds of binary ones; zero and one count as the nearest there is."""
    eps = core.finfo(probs.dtype).eps
    near = probs.clamp(eps, 1 - eps)
    return near.log() - (-near).log1p() if is_binary else near.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of :func:`probs_to_logits`."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)
