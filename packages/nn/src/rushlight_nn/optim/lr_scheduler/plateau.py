"""A schedule that depends on a metric."""

from __future__ import annotations

import math

from ..._typing import Any
from ..optimizer import Optimizer
from .base import LRScheduler, check_optimizer, per_group, set_rate


class ReduceLROnPlateau(LRScheduler):
    """A schedule that multiplies the rate by `factor` if a metric has not improved for more than `patience` epochs.

    Call `step(metric)` once per epoch, usually with the loss of a validation set.

    Args:
        optimizer: the optimizer whose learning rates are set.
        mode: "min" if a smaller metric is better, "max" if a larger metric is better.
        factor: the factor by which the rate is multiplied, below 1.
        patience: number of consecutive epochs without an improvement that are allowed. If the next epoch has
            no improvement either, the rate is reduced.
        threshold: a metric counts as an improvement if it is better than the best metric by more than this
            threshold.
        threshold_mode: "rel" if the threshold is a fraction of the best metric, "abs" if it is a difference.
        cooldown: number of epochs after a reduction that do not count towards `patience`.
        min_lr: the lowest rate, one number for all groups or a list with one for each group.
        eps: the rate is not reduced if it would change by at most this number.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> for metric in (5.0, 4.0, 4.0, 4.0):
        ...     scheduler.step(metric)
        >>> scheduler.get_last_lr()
        [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        check_optimizer("ReduceLROnPlateau", optimizer)
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau(factor): got {factor}, needs a number below 1")
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceLROnPlateau(mode): got {mode!r}, needs 'min' or 'max'")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"ReduceLROnPlateau(threshold_mode): got {threshold_mode!r}, needs 'rel' or 'abs'"
            )
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.eps = eps
        self.min_lrs: list[Any] = per_group(
            "ReduceLROnPlateau", "min_lr", min_lr, len(optimizer.param_groups)
        )
        self.default_min_lr: Any | None = min_lr if not isinstance(min_lr, (list, tuple)) else None
        self._reset()
        # The schedule has no initial rate, so it leaves the entry "initial_lr" of the groups to others.
        self.optimizer = optimizer
        self._last_lr = self._rates()
        self.last_epoch = 0

    def _reset(self) -> None:
        self.best: float = math.inf if self.mode == "min" else -math.inf
        self.cooldown_counter: int = 0
        self.num_bad_epochs: int = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether the cooldown after the last reduction continues, so that epochs do not count towards `patience`."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Return whether the metric `a` is better than `best` by more than the threshold."""
        if self.threshold_mode == "abs":
            return a < best - self.threshold if self.mode == "min" else a > best + self.threshold
        return a < best * (1 - self.threshold) if self.mode == "min" else a > best * (1 + self.threshold)

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Record the metric of an epoch, and reduce the rates if it has not improved for more than `patience` epochs."""
        current = float(metrics)
        self.last_epoch: int = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        # Groups may have been added after the scheduler was created.
        lowest = self.min_lrs + [self.default_min_lr or 0] * (len(groups) - len(self.min_lrs))
        for group, least in zip(groups, lowest, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_rate(group, new)
