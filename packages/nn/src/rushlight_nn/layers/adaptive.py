"""Adaptive softmax, for large numbers of classes."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence

import rushlight_core as core
from rushlight_core import Tensor

from .. import functional as F
from ..module import Module
from .container import ModuleList, Sequential
from .linear import Linear

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple

    class ASMoutput(NamedTuple):
        """A named tuple: `output`, the log-probabilities of the targets, (N), and `loss`, their negated mean."""

        output: Tensor
        loss: Tensor
else:
    ASMoutput = namedtuple("ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Adaptive softmax for large numbers of classes (Grave et al. 2017).

    The classes must be ordered by decreasing frequency, so that class 0 is the most frequent class. The classes are split
    into a head and clusters. The head contains the most frequent classes and one entry for each cluster. The scores within a
    cluster are computed only for the samples whose class is in the cluster, and clusters of rarer classes use fewer
    features.

    Args:
        in_features: size of the input's last dimension.
        n_classes: number of classes.
        cutoffs: the first class of each cluster, in increasing order. The classes below the first cutoff are in the
            head.
        div_value: the factor by which the number of features decreases from one cluster to the next.
        head_bias: whether the head has a bias.

    Raises:
        ValueError: the cutoffs are not increasing whole numbers between 1 and n_classes - 1.

    Shape:
        - Input: (N, in_features) or (in_features).
        - Target: (N) or (), int64.
        - Output: a named tuple. The field `output` contains the log-probabilities of the targets, (N) or (). The field
          `loss` has the shape ().

    Example:
        >>> layer = nn.AdaptiveLogSoftmaxWithLoss(16, n_classes=1000, cutoffs=[10, 100])
        >>> input, target = torch.randn(32, 16), torch.randint(0, 1000, (32,))
        >>> output, loss = layer(input, target)
        >>> output.shape, layer.log_prob(input).shape
        (torch.Size([32]), torch.Size([32, 1000]))
    """

    tail: ModuleList

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        limits = list(cutoffs)
        if (
            not limits
            or limits != sorted(set(limits))
            or any(int(c) != c for c in limits)
            or limits[0] < 1
            or limits[-1] > n_classes - 1
        ):
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss(cutoffs): got {limits}, needs increasing ints "
                f"from 1 to n_classes - 1 = {n_classes - 1}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs: list[int] = [*limits, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size: int = limits[0]
        self.n_clusters: int = len(limits)
        self.head_size: int = self.shortlist_size + self.n_clusters
        self.head: Linear = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            hidden = int(in_features // div_value ** (i + 1))
            project = Linear(in_features, hidden, False, device, dtype)
            self.tail.append(Sequential(project, Linear(hidden, high - low, False, device, dtype)))

    def reset_parameters(self) -> None:
        """Draw new initial values for the parameters."""
        self.head.reset_parameters()
        for project, classify in self.tail:
            project.reset_parameters()
            classify.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> ASMoutput:
        """Return the log-probability of each sample's class, and the loss.

        Args:
            input: (N, in_features) or (in_features).
            target: classes, (N) or ().

        Returns:
            `output`, (N) or (), and `loss`, the negated mean of `output`.

        Raises:
            RuntimeError: the shapes do not match, or a target is out of range.
        """
        single = target.dim() == 0
        if target.dim() > 1 or input.dim() != target.dim() + 1:
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss(input, target): got shapes {tuple(input.shape)} and {tuple(target.shape)}, "
                "needs (N, in_features) and (N), or (in_features) and ()"
            )
        if single:
            input, target = input.unsqueeze(0), target.unsqueeze(0)
        elif input.shape[0] != target.shape[0]:
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss(input, target): got {input.shape[0]} samples and {target.shape[0]} targets, "
                "needs equal numbers"
            )
        if target.numel() and not 0 <= int(target.min()) <= int(target.max()) < self.n_classes:
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss(target): got classes from {int(target.min())} to {int(target.max())}, "
                f"needs 0 to {self.n_classes - 1}"
            )
        head = F.log_softmax(self.head(input), 1)
        column = target.clamp(max=self.shortlist_size - 1)  # index of each target's column in the head
        within = core.zeros_like(head[:, 0])  # log-probability of each target within its cluster
        for i, cluster in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel():
                column = column.index_fill(0, rows, self.shortlist_size + i)
                own = F.log_softmax(cluster(input.index_select(0, rows)), 1)
                own = own.gather(1, (target.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
                within = within.index_copy(0, rows, own.to(within.dtype))
        output = head.gather(1, column.unsqueeze(1)).squeeze(1) + within
        loss = -output.mean()
        return ASMoutput(output.squeeze(0) if single else output, loss)

    def _all(self, input: Tensor, head: Tensor) -> Tensor:
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            own = F.log_softmax(cluster(input), 1)
            parts.append(own + head[:, self.shortlist_size + i].unsqueeze(1))
        return core.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities of all classes, (N, n_classes), for inputs (N, in_features)."""
        return self._all(input, F.log_softmax(self.head(input), 1))

    def predict(self, input: Tensor) -> Tensor:
        """Return the most likely class of each sample, (N), for inputs (N, in_features).

        The result equals `log_prob(input).argmax(1)`, but requires less computation.
        """
        head = self.head(input)
        best = head.argmax(1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel():  # only these rows need the scores within clusters
            some = input.index_select(0, rows)
            likely = self._all(some, F.log_softmax(head.index_select(0, rows), 1)).argmax(1)
            best = best.index_copy(0, rows, likely)
        return best
