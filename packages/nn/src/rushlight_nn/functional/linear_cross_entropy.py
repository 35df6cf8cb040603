"""The cross entropy of the output of a linear layer, computed without storing the scores of the whole batch."""

from __future__ import annotations

import math

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core.overrides import overridable

from .._core import operator
from .._typing import Any
from .loss import cross_entropy

_linear = operator("linear")


class LinearCrossEntropyOptions:
    """Options of :func:`linear_cross_entropy`, which determine how many samples are processed at a time.

    Only the scores (logits) of one chunk are in memory at a time. The backward pass computes the scores
    again.

    Args:
        allow_retain_graph: accepted and ignored; the backward pass can always be run again.
        batch_chunk_size: number of samples in a chunk. If None, `chunking_method` determines the number. If both
            `batch_chunk_size` and `chunking_method` are None, the whole batch is one chunk.
        chunking_method: "aspect_ratio" chooses the chunks so that the scores of one chunk have about as many elements as the
            whole input. "aspect_ratio:N" makes the chunks N times smaller. "auto" is the same as "aspect_ratio:2".
        acc_policy: "auto", "accurate", "balanced" or "compact". `acc_policy` has no effect, because gradients are
            accumulated in their own dtype.
        acc_dtype: accepted and ignored, because gradients are accumulated in their own dtype.

    Raises:
        ValueError: `chunking_method` or `acc_policy` is unknown, or `batch_chunk_size` is not positive.

    Example:
        >>> options = nn.LinearCrossEntropyOptions(batch_chunk_size=4)
        >>> x, weight, target = torch.randn(32, 8), torch.randn(1000, 8), torch.randint(0, 1000, (32,))
        >>> loss = F.linear_cross_entropy(x, weight, target, options=options)
    """

    __slots__ = ("acc_dtype", "acc_policy", "allow_retain_graph", "batch_chunk_size", "chunking_method")

    def __init__(
        self,
        allow_retain_graph: bool = False,
        batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto",
        acc_policy: str = "auto",
        acc_dtype: Any = None,
    ) -> None:
        if acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(
                f"LinearCrossEntropyOptions(acc_policy): got {acc_policy!r}, "
                "needs 'auto', 'accurate', 'balanced' or 'compact'"
            )
        if chunking_method not in (None, "auto"):
            name, colon, factor = chunking_method.partition(":")
            if name != "aspect_ratio" or (colon and not (factor.isdigit() and int(factor) > 0)):
                raise ValueError(
                    f"LinearCrossEntropyOptions(chunking_method): got {chunking_method!r}, "
                    "needs 'auto', 'aspect_ratio', 'aspect_ratio:N' or None"
                )
        if batch_chunk_size is not None and not (isinstance(batch_chunk_size, int) and batch_chunk_size > 0):
            raise ValueError(
                f"LinearCrossEntropyOptions(batch_chunk_size): got {batch_chunk_size!r}, "
                "needs a positive int or None"
            )
        self.allow_retain_graph: bool = allow_retain_graph
        self.batch_chunk_size: int | None = batch_chunk_size
        self.chunking_method: str | None = chunking_method
        self.acc_policy = acc_policy
        self.acc_dtype: Any = acc_dtype

    def __repr__(self) -> str:
        names = ("allow_retain_graph", "batch_chunk_size", "chunking_method", "acc_policy", "acc_dtype")
        return f"LinearCrossEntropyOptions({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def _chunk(self, batch: int, features: int, classes: int) -> int:
        """Return the number of samples in a chunk."""
        if self.batch_chunk_size is not None:
            return self.batch_chunk_size
        if self.chunking_method is None:
            return max(batch, 1)
        method = "aspect_ratio:2" if self.chunking_method == "auto" else self.chunking_method
        parts = int(method.partition(":")[2] or 1)
        fair = math.ceil(batch / max(math.ceil(classes / max(features, 1)), 1))
        power = 1 << max(fair - 1, 0).bit_length()
        return max(1, min(power // parts, batch))


@overridable
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """Return ``cross_entropy(linear(input, linear_weight, linear_bias), target)``, in chunks if `options` is given.

    Args:
        input: the features.
        linear_weight: weight of the linear layer. If `linear_weight` has the additional dimensions d1, ..., a loss is
            computed for each index of these dimensions.
        target: classes, int64, or probabilities.
        linear_bias: bias of the linear layer.
        weight: a factor for each class, (C).
        reduction: "mean", "sum" or "none".
        ignore_index: a target class that is excluded from the loss, -100 by default.
        label_smoothing: the fraction of each target that is spread evenly over all classes.
        options: how to process the batch in chunks, so that only the scores of one chunk are in memory. `options` has an
            effect only if the targets are classes and the weight has two dimensions.

    Shape:
        - Input: (N, in_features) or (in_features).
        - `linear_weight`: (C, in_features) or (C, d1, ..., in_features); `linear_bias`: (C) or (C, d1, ...).
        - Target: classes (N) or (N, d1, ...), or probabilities (N, C, d1, ...). N is missing if the input has no batch
          dimension.
        - Output: (), or the shape of class targets with `reduction` "none".

    Raises:
        RuntimeError: the shapes do not match, or `ignore_index` is given and the targets are probabilities.

    Example:
        >>> x, weight, target = torch.randn(32, 8), torch.randn(1000, 8), torch.randint(0, 1000, (32,))
        >>> loss = F.linear_cross_entropy(x, weight, target)
        >>> torch.allclose(loss, F.cross_entropy(x @ weight.T, target), atol=1e-4)
        True
    """
    name = "linear_cross_entropy"
    if input.dim() not in (1, 2):
        raise RuntimeError(
            f"{name}(input): got shape {tuple(input.shape)}, needs (N, in_features) or (in_features)"
        )
    if linear_weight.dim() < 2 or linear_weight.shape[-1] != input.shape[-1]:
        raise RuntimeError(
            f"{name}(linear_weight): got shape {tuple(linear_weight.shape)}, needs (C, ..., {input.shape[-1]})"
        )
    classes, *positions = linear_weight.shape[:-1]
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *positions):
        raise RuntimeError(
            f"{name}(linear_bias): got shape {tuple(linear_bias.shape)}, needs {(classes, *positions)}"
        )
    if positions and input.dim() == 1:
        raise RuntimeError(
            f"{name}(input): got shape {tuple(input.shape)}, "
            "needs a batch dimension if linear_weight has more than 2 dimensions"
        )
    batch = tuple(input.shape[:-1])
    if tuple(target.shape) == (*batch, classes, *positions) and ignore_index is not None:
        raise RuntimeError(f"{name}(ignore_index): got {ignore_index}, but the targets are probabilities")
    ignore = -100 if ignore_index is None else ignore_index
    by_class = target.dtype == core.int64 and tuple(target.shape) == batch
    if options is not None and len(batch) == 1 and not positions and by_class:
        step = options._chunk(batch[0], input.shape[-1], classes)
        if 0 < step < batch[0]:
            settings = (weight, ignore, label_smoothing)
            return _chunked(input, linear_weight, linear_bias, target, step, reduction, settings)
    rows = linear_weight.reshape(-1, linear_weight.shape[-1])
    scores = _linear(input, rows, None if linear_bias is None else linear_bias.reshape(-1))
    scores = scores.reshape(*batch, classes, *positions)
    return cross_entropy(
        scores,
        target,
        weight,
        ignore_index=ignore,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def _chunked(
    input: Tensor,
    linear_weight: Tensor,
    linear_bias: Tensor | None,
    target: Tensor,
    step: int,
    reduction: str,
    settings: tuple[Tensor | None, int, float],
) -> Tensor:
    """Compute the loss chunk by chunk, without storing the scores for the backward pass."""
    weight, ignore, smoothing = settings

    def losses(part: Tensor, rows: Tensor, bias: Tensor | None, wanted: Tensor) -> Tensor:
        return cross_entropy(
            _linear(part, rows, bias),
            wanted,
            weight,
            ignore_index=ignore,
            reduction="none",
            label_smoothing=smoothing,
        )

    parts = [
        _recomputed(losses, part, linear_weight, linear_bias, wanted)
        for part, wanted in zip(input.split(step), target.split(step), strict=True)
    ]
    result = core.cat(parts)
    if reduction == "none":
        return result
    total = result.sum()
    if reduction == "sum":
        return total
    counted = target != ignore
    if weight is None:
        return total / counted.sum()
    return (
        total
        / weight.take(target.where(counted, core.zeros_like(target)))
        .where(counted, weight.new_zeros(()))
        .sum()
    )


_function: Any = None


def _recomputed(losses: Any, part: Tensor, rows: Tensor, bias: Tensor | None, wanted: Tensor) -> Tensor:
    """Return the losses of one chunk of samples, `losses(part, rows, bias, wanted)`.

    The backward pass calls `losses` again, so that the scores are not stored."""
    global _function
    provider: Any = getattr(core, "autograd", None)
    tensors = [part, rows] if bias is None else [part, rows, bias]
    if not core.is_grad_enabled() or not any(t.requires_grad for t in tensors) or provider is None:
        return losses(part, rows, bias, wanted)
    if _function is None:

        class Recomputed(provider.Function):
            @staticmethod
            def forward(ctx: Any, losses: Any, wanted: Tensor, *tensors: Tensor) -> Tensor:
                ctx.losses, ctx.wanted = losses, wanted
                ctx.save_for_backward(*tensors)
                part, rows, *bias = tensors
                return losses(part, rows, bias[0] if bias else None, wanted)

            @staticmethod
            def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
                with core.enable_grad():
                    again = [t.detach().requires_grad_(t.requires_grad) for t in ctx.saved_tensors]
                    part, rows, *bias = again
                    value = ctx.losses(part, rows, bias[0] if bias else None, ctx.wanted)
                needed = [t for t in again if t.requires_grad]
                grads = iter(provider.grad(value, needed, grad))
                return (None, None, *(next(grads) if t.requires_grad else None for t in again))

        _function = Recomputed
    return _function.apply(losses, wanted, *tensors)
