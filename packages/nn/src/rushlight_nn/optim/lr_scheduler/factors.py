"""Schedules whose rate is a function of the epoch."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

from ..._typing import Any
from ..optimizer import Optimizer
from .base import LRScheduler, per_group, set_rate


class LambdaLR(LRScheduler):
    """A schedule that multiplies the initial rate by ``lr_lambda(epoch)``.

    Args:
        optimizer: the optimizer whose learning rates are set.
        lr_lambda: the function, or a list with one function for each group.
        last_epoch: the last completed epoch, from which the schedule continues; -1 starts a new schedule.

    Raises:
        ValueError: the list does not have one function for each group.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.25, 0.125]
    """

    _unsaved = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas: list[Any] = per_group(
            "LambdaLR", "lr_lambda", lr_lambda, len(optimizer.param_groups)
        )
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * fn(self.last_epoch) for base, fn in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except for the optimizer and the functions.

        If a function is a callable object, the attributes of this object are included.
        """
        state = super().state_dict()
        state["lr_lambdas"] = [dict(getattr(f, "__dict__", {})) or None for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state that :meth:`state_dict` returned."""
        state = dict(state_dict)
        for fn, attributes in zip(self.lr_lambdas, state.pop("lr_lambdas", []), strict=False):
            if attributes:
                fn.__dict__.update(attributes)
        super().load_state_dict(state)


class MultiplicativeLR(LambdaLR):
    """A schedule that multiplies the current rate by ``lr_lambda(epoch)`` in every epoch.

    Args:
        optimizer: the optimizer whose learning rates are set.
        lr_lambda: the function, or a list with one function for each group.
        last_epoch: the last completed epoch, from which the schedule continues; -1 starts a new schedule.

    Raises:
        ValueError: the list does not have one function for each group.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.25, 0.125]
    """

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._rates()
        return [rate * fn(self.last_epoch) for rate, fn in zip(self._rates(), self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """A schedule that multiplies the rate by `gamma` every `step_size` epochs.

    Args:
        optimizer: the optimizer whose learning rates are set.
        step_size: number of epochs between two changes of the rate.
        gamma: the factor.
        last_epoch: the last completed epoch, from which the schedule continues; -1 starts a new schedule.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        drop = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [rate * self.gamma if drop else rate for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """A schedule that multiplies the rate by `gamma` at each milestone.

    Args:
        optimizer: the optimizer whose learning rates are set.
        milestones: the epochs at which the rate changes. At an epoch that is listed twice, the rate is multiplied twice.
        gamma: the factor.
        last_epoch: the last completed epoch, from which the schedule continues; -1 starts a new schedule.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.5, 0.25, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones: Counter[int] = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        factor = self.gamma ** self.milestones[self.last_epoch]
        return [rate * factor for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except for the optimizer, with the milestones as a dictionary from epochs to counts."""
        return {**super().state_dict(), "milestones": dict(self.milestones)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state that :meth:`state_dict` returned."""
        super().load_state_dict({**state_dict, "milestones": Counter(state_dict["milestones"])})


class ConstantLR(LRScheduler):
    """A schedule that multiplies the rate by `factor` for `total_iters` epochs, and then restores the rate.

    Args:
        optimizer: the optimizer whose learning rates are set.
        factor: the factor, from 0 to 1.
        total_iters: number of epochs in which the factor is applied.
        last_epoch: the last completed epoch, from which the schedule continues; -1 starts a new schedule.

    Raises:
        ValueError: `factor` is out of range.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR(factor): got {factor}, needs a number from 0 to 1")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        factor = (
            self.factor
            if self.last_epoch == 0
            else 1 / self.factor
            if self.last_epoch == self.total_iters
            else 1
        )
        return [rate * factor for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * (self.factor if self.last_epoch < self.total_iters else 1) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """A schedule that multiplies the rate by a factor that changes linearly, for example for a warm-up.

    Args:
        optimizer: the optimizer whose learning rates are set.
        start_factor: the factor in the first epoch, above 0 and at most 1.
        end_factor: the factor from epoch `total_iters` on, from 0 to 1.
        total_iters: number of epochs in which the factor changes.
        last_epoch: the last completed epoch, from which the schedule continues; -1 starts a new schedule.

    Raises:
        ValueError: a factor is out of range.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.25, 0.5, 0.75, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                f"LinearLR(start_factor): got {start_factor}, needs a number above 0 and at most 1"
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR(end_factor): got {end_factor}, needs a number from 0 to 1")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        done = min(epoch, self.total_iters) / self.total_iters if self.total_iters else 0.0
        return self.start_factor + (self.end_factor - self.start_factor) * done

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._rates()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        change = self._factor(self.last_epoch) / self._factor(self.last_epoch - 1)
        return [rate * change for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """A schedule that multiplies the rate by `gamma` every epoch.

    Args:
        optimizer: the optimizer whose learning rates are set.
        gamma: the factor.
        last_epoch: the last completed epoch, from which the schedule continues; -1 starts a new schedule.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.25, 0.125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        first = self.last_epoch == 0 or self._is_initial
        return [rate if first else rate * self.gamma for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """A schedule with the rate ``initial rate · (1 - epoch / total_iters)^power``, and 0 from epoch `total_iters` on.

    Args:
        optimizer: the optimizer whose learning rates are set.
        total_iters: number of epochs in which the rate falls to zero.
        power: the exponent.
        last_epoch: the last completed epoch, from which the schedule continues; -1 starts a new schedule.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4, power=2.0)
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5625, 0.25, 0.0625, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        left, before = self.total_iters - self.last_epoch, self.total_iters - self.last_epoch + 1
        return [rate * (left / before) ** self.power for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        left = 1 - min(self.last_epoch, self.total_iters) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """A cosine schedule: the rate falls to `eta_min` in `T_max` epochs, and then rises again.

    The schedule is from Loshchilov and Hutter 2017, without the restarts.

    Args:
        optimizer: the optimizer whose learning rates are set.
        T_max: number of epochs in which the rate falls.
        eta_min: the lowest rate.
        last_epoch: the last completed epoch, from which the schedule continues; -1 starts a new schedule.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.8535533905932737, 0.5, 0.14644660940672627, 0.0]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self._is_initial:
            return self._rates()
        now, before = (
            1 + math.cos(math.pi * epoch / self.T_max) for epoch in (self.last_epoch, self.last_epoch - 1)
        )
        if before < 1e-12:  # the current rate is the minimum, of which no multiple is the next rate
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                rate + (base - self.eta_min) * rise
                for rate, base in zip(self._rates(), self.base_lrs, strict=True)
            ]
        return [(rate - self.eta_min) * now / before + self.eta_min for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """A cosine schedule with restarts from the initial rate (Loshchilov and Hutter 2017).

    `step(epoch)` accepts fractions of epochs, so that it can be called after every batch.

    Args:
        optimizer: the optimizer whose learning rates are set.
        T_0: number of epochs of the first period.
        T_mult: the length of each period divided by the length of the period before it.
        eta_min: the lowest rate.
        last_epoch: the last completed epoch, from which the schedule continues; -1 starts a new schedule.

    Raises:
        ValueError: `T_0` is not a positive int, or `T_mult` is not an int of at least 1.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 1.0, 0.5, 1.0]
    """

    T_i: int

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"CosineAnnealingWarmRestarts(T_0): got {T_0!r}, needs a positive int")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(
                f"CosineAnnealingWarmRestarts(T_mult): got {T_mult!r}, needs an int of at least 1"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advance by one epoch, or to `epoch`, which may be a fraction, and set the rates."""
        if epoch is None:
            epoch = self.last_epoch + 1
        if epoch < 0:
            raise ValueError(
                f"CosineAnnealingWarmRestarts.step(epoch): got {epoch}, needs a number of at least 0"
            )
        self.T_cur, self.T_i = epoch, self.T_0
        if self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self.last_epoch: int = math.floor(epoch)
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            set_rate(group, rate)
        self._last_lr = self._rates()
