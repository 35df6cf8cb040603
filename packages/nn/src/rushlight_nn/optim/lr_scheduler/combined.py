"""Schedules that combine other schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from ..._typing import Any
from ..optimizer import Optimizer
from .base import LRScheduler, set_rate
from .plateau import ReduceLROnPlateau


def _check(name: str, schedulers: Sequence[Any], optimizer: Any) -> None:
    """Raise an error if the schedulers cannot be combined or do not belong to the optimizer."""
    for position, scheduler in enumerate(schedulers):
        kind = type(scheduler).__name__
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name}(schedulers): entry {position} must be a scheduler, got {kind}")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name}(schedulers): entry {position} is a {kind}, whose step() needs a metric\n"
                f"hint: call step(metric) of the {kind} yourself"
            )
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{name}(schedulers): entry {position} must be a scheduler of the given optimizer, "
                "but has another optimizer"
            )


def _counting(scheduler: Any) -> Iterator[Any]:
    """Yield the schedulers that count epochs: the given scheduler, and the schedulers that it combines."""
    if hasattr(scheduler, "last_epoch"):
        yield scheduler
    for part in getattr(scheduler, "_schedulers", ()):
        yield from _counting(part)


class _Combined(LRScheduler):
    _unsaved = ("optimizer", "_schedulers")
    _schedulers: list[Any]

    def state_dict(self) -> dict[str, Any]:
        """Return a dictionary of the attributes, without the optimizer, and with a state dictionary for each scheduler."""
        return {
            **super().state_dict(),
            "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers],
        }

    def _restart(self) -> None:
        for part in _counting(self):
            part.last_epoch = -1
        for group in self.optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        self.step()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state that :meth:`state_dict` returned."""
        state = dict(state_dict)
        for scheduler, own in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(own)
        super().load_state_dict(state)


class SequentialLR(_Combined):
    """A schedule that runs several schedulers one after the other.

    The first scheduler starts at epoch 0, and ``schedulers[i]`` starts at epoch ``milestones[i - 1]``. Each scheduler counts
    the epochs from 0 when it starts.

    Args:
        optimizer: the optimizer whose learning rates are set.
        schedulers: the schedulers, all for this optimizer.
        milestones: the epochs at which the schedulers after the first one start.
        last_epoch: the last completed epoch, from which the schedule continues; -1 starts a new schedule.

    Raises:
        TypeError: an entry of `schedulers` is not a scheduler.
        ValueError: the number of milestones is not one less than the number of schedulers, or a scheduler belongs to
            another optimizer or is a `ReduceLROnPlateau`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> warmup = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=10)
        >>> decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[2])
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.1, 0.1, 1.0, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[Any], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if not schedulers or len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR(milestones): got {len(milestones)} for {len(schedulers)} schedulers, "
                "needs one milestone fewer than schedulers"
            )
        _check("SequentialLR", schedulers, optimizer)
        self.optimizer = optimizer
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.last_epoch: int = last_epoch + 1
        # Every scheduler took its first step when it was created. Undo these steps, and then step only the scheduler of
        # epoch 0.
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        for scheduler in self._schedulers:
            for part in _counting(scheduler):
                part.last_epoch -= 1
                part._step_count = 0
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._first_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Advance by one epoch and set the rates."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._restart()
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Combined):
    """A schedule that runs several schedulers at once, so that their factors are multiplied.

    Args:
        schedulers: the schedulers, all for one optimizer.
        optimizer: the optimizer of the schedulers; by default the optimizer of the first scheduler.

    Raises:
        TypeError: an entry of `schedulers` is not a scheduler.
        ValueError: `schedulers` is empty, or a scheduler belongs to another optimizer or is a `ReduceLROnPlateau`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> constant = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=2)
        >>> decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> scheduler = torch.optim.lr_scheduler.ChainedScheduler([constant, decay])
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.1, 0.05, 0.25, 0.125]
    """

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler(schedulers): got no schedulers, needs at least one")
        if optimizer is None:
            optimizer = getattr(schedulers[0], "optimizer", None)
        _check("ChainedScheduler", schedulers, optimizer)
        self.optimizer: Any | Optimizer = optimizer
        self._schedulers = list(schedulers)
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]
        """Advance all schedulers by one epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()
