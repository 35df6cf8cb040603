"""The base class of learning-rate schedules, and functions that the schedules share."""

from __future__ import annotations

import warnings

from rushlight_core import Tensor

from ..._typing import Any
from ..optimizer import Optimizer


def set_rate(group: dict[str, Any], rate: Any) -> None:
    """Set the learning rate of a group. If the rate is a tensor, change this tensor in place."""
    if hasattr(group["lr"], "fill_"):
        group["lr"].fill_(float(rate))
    else:
        group["lr"] = rate


def per_group(scheduler: str, name: str, value: Any, count: int) -> list[Any]:
    """Return a list with one number per group: the elements of a list or tuple, or `value` for every group.

    A tensor is converted to a number, because later changes of the tensor must not change the schedule.
    """
    if not isinstance(value, (list, tuple)):
        return [as_number(value)] * count
    if len(value) != count:
        raise ValueError(
            f"{scheduler}({name}): got {len(value)} values, needs one for each of {count} parameter groups"
        )
    return [as_number(one) for one in value]


def as_number(value: Any) -> Any:
    """Return a tensor with one element as a number, and any other value unchanged."""
    return value.item() if isinstance(value, Tensor) else value


def check_optimizer(scheduler: str, optimizer: Any) -> None:
    """Raise TypeError if `optimizer` is not an optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{scheduler}(optimizer): got {type(optimizer).__name__}, needs an Optimizer")


class LRScheduler:
    """The base class of learning-rate schedules. A subclass defines `get_lr`.

    `get_lr` returns the rate of each group at `last_epoch`. `step` is called after the optimizer's step, usually once per
    epoch. The initial rate of each group is stored in the group's entry "initial_lr".

    Args:
        optimizer: the optimizer whose learning rates are set.
        last_epoch: the last completed epoch, from which the schedule continues; -1 starts a new schedule.

    Raises:
        TypeError: `optimizer` is not an optimizer.
        KeyError: `last_epoch` is given and a group has no entry "initial_lr".
        NotImplementedError: the subclass does not define `get_lr`.

    Example:
        >>> class Halving(torch.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [base * 0.5**self.last_epoch for base in self.base_lrs]
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = Halving(optimizer)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    # The attributes that are not part of the state.
    _unsaved: tuple[str, ...] = ("optimizer",)

    base_lrs: list[float]
    last_epoch: int
    # Whether the constructor is running. If it continues a schedule, the groups already have the rate of `last_epoch`.
    _is_initial: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(type(self).__name__, optimizer)
        self.optimizer = optimizer
        for position, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}(last_epoch): to continue from epoch {last_epoch}, "
                    f"parameter group {position} needs an 'initial_lr'"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._last_lr = [float(group["lr"]) for group in optimizer.param_groups]
        self._first_step()

    def _first_step(self) -> None:
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[float]:
        """Return the rate of each group at `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr")

    def get_last_lr(self) -> list[float]:
        """Return the rates that were set most recently, one per group."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Advance by one epoch and set the rates. The deprecated argument `epoch` sets the epoch instead."""
        if self._step_count == 1 and self.optimizer._step_count == 0:
            warnings.warn(
                f"{type(self).__name__}.step() was called before the optimizer's first step: "
                "the optimizer never uses the first learning rate",
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            self._set(self.get_lr())
        else:
            warnings.warn(
                "LRScheduler.step(epoch): the argument is deprecated\nhint: call step() without arguments",
                DeprecationWarning,
                stacklevel=2,
            )
            self._set_epoch(epoch)

    def _restart(self) -> None:
        """Begin the schedule after another one: set the rates of epoch 0."""
        self._set_epoch(0)

    def _set_epoch(self, epoch: int) -> None:
        """Set the epoch and its rates. Schedules that only define rates relative to the current ones continue from these."""
        self.last_epoch = epoch
        closed_form = getattr(self, "_get_closed_form_lr", None)
        self._set(self.get_lr() if closed_form is None else closed_form())

    def _set(self, rates: list[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_rate(group, rate)
        self._last_lr = self._rates()

    def _rates(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return a dictionary of all attributes except for the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key not in self._unsaved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state that :meth:`state_dict` returned. The optimizer's `load_state_dict` restores the rates."""
        self.__dict__.update(state_dict)
