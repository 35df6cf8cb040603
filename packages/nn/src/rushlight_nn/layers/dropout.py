"""Dropout layers."""

from __future__ import annotations

from rushlight_core import Tensor

from .. import functional as F
from ..functional._arguments import check_probability
from ..module import Module


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        check_probability(type(self).__name__, p)
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Dropout: in training mode, zero each element with probability `p` and scale the other elements by 1 / (1 - p).

    In evaluation mode, the input is returned unchanged. Dropout is described in Srivastava et al. 2014.

    Args:
        p: probability of zeroing an element.
        inplace: whether to overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> layer = nn.Dropout(p=0.5)
        >>> set(layer(torch.ones(100)).tolist()) == {0.0, 2.0}
        True
        >>> layer.eval()(torch.ones(3))
        tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Dropout of whole channels of images: zero each channel with probability `p`, and scale the rest by 1 / (1 - p).

    Neighbouring pixels are often correlated, so that dropping single pixels has little effect
    (Tompson et al. 2015). In evaluation mode, the input is returned unchanged.

    Args:
        p: probability of zeroing a channel.
        inplace: whether to overwrite the input.

    Shape:
        - Input and output: (N, C, H, W). An input with three dimensions is treated as (N, C, L) and causes a warning; use
          :class:`Dropout1d` for such inputs.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> dropped = nn.Dropout2d(0.5)(torch.ones(20, 16, 4, 4))
        >>> bool((dropped == dropped[:, :, :1, :1]).all())  # a channel is dropped as a whole
        True
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """Dropout of whole channels of sequences: zero each channel with probability `p`, and scale the rest by 1 / (1 - p).

    Neighbouring elements of a channel are often correlated, so that dropping single elements has little
    effect (Tompson et al. 2015). In evaluation mode, the input is returned unchanged.

    Args:
        p: probability of zeroing a channel.
        inplace: whether to overwrite the input.

    Shape:
        - Input and output: (N, C, L) or (C, L).

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> dropped = nn.Dropout1d(0.5)(torch.ones(20, 16, 4))
        >>> bool((dropped == dropped[:, :, :1]).all())  # a channel is dropped as a whole
        True
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """Dropout of whole channels of volumes: zero each channel with probability `p`, and scale the rest by 1 / (1 - p).

    In evaluation mode, the input is returned unchanged. The method is described in Tompson et al. 2015.

    Args:
        p: probability of zeroing a channel.
        inplace: whether to overwrite the input.

    Shape:
        - Input and output: (N, C, D, H, W) or (C, D, H, W).

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> dropped = nn.Dropout3d(0.5)(torch.ones(20, 16, 2, 4, 4))
        >>> bool((dropped == dropped[:, :, :1, :1, :1]).all())  # a channel is dropped as a whole
        True
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout for :class:`SELU`: in training mode, set elements to SELU's lower limit with probability `p`.

    The result is scaled and shifted so that an input with mean 0 and variance 1 keeps this mean and variance
    (Klambauer et al. 2017). In evaluation mode, the input is returned unchanged.

    Args:
        p: probability of dropping an element.
        inplace: whether to overwrite the input.

    Shape:
        - Input and output: (*), any shape.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> dropped = nn.AlphaDropout(0.2)(torch.randn(100_000))
        >>> abs(float(dropped.mean())) < 0.05, abs(float(dropped.std()) - 1) < 0.05
        (True, True)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """Alpha dropout of whole channels: drop each channel with probability `p`; see :class:`AlphaDropout`.

    Args:
        p: probability of dropping a channel.
        inplace: whether to overwrite the input.

    Shape:
        - Input and output: (N, C, *).

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> dropped = nn.FeatureAlphaDropout(0.5)(torch.ones(20, 16, 4))
        >>> bool((dropped == dropped[:, :, :1]).all())  # a channel is dropped as a whole
        True
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
