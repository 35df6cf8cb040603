"""The one-cycle schedule."""

from __future__ import annotations

import math

from ..._typing import Any
from ..optimizer import Optimizer
from .base import LRScheduler, per_group


class OneCycleLR(LRScheduler):
    """A schedule in which the rate rises once to `max_lr` and then falls (Smith and Topin 2019).

    Call `step` after every batch.

    The rate starts at max_lr / div_factor and ends at max_lr / (div_factor · final_div_factor). The momentum falls while the
    rate rises, and rises while the rate falls.

    Args:
        optimizer: the optimizer whose learning rates are set; with `cycle_momentum`, its groups must have "momentum" or
            "betas".
        max_lr: the highest rate, one number for all groups or a list with one for each group.
        total_steps: number of steps; by default epochs · steps_per_epoch.
        epochs: number of epochs.
        steps_per_epoch: number of steps in an epoch.
        pct_start: the fraction of the steps in which the rate rises.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether to also change the momentum, from `max_momentum` at the lowest rate to
            `base_momentum` at the highest rate.
        base_momentum, max_momentum: the smallest and the largest momentum, one number for all groups or a list with one for
            each group.
        div_factor: the highest rate divided by the first rate.
        final_div_factor: the first rate divided by the last rate.
        three_phase: whether to use three phases, in which the rate rises, falls to the first rate in the same
            number of steps, and then falls to the last rate. In the third phase, the momentum remains
            `max_momentum`.
        last_epoch: the last completed step, from which the schedule continues; -1 starts a new schedule.

    Raises:
        ValueError: an argument is out of range, `cycle_momentum` is set but the optimizer has no momentum, or `step` is
            called more than `total_steps` times.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)
        >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(
        ...     optimizer, max_lr=1.0, total_steps=5, pct_start=0.6, anneal_strategy="linear"
        ... )
        >>> rates = scheduler.get_last_lr()
        >>> for step in range(4):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     rates = rates + scheduler.get_last_lr()
        >>> [round(rate, 3) for rate in rates]
        [0.04, 0.52, 1.0, 0.5, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR(total_steps): needs total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if not isinstance(total_steps, int) or total_steps <= 0:
            raise ValueError(f"OneCycleLR(total_steps): got {total_steps!r}, needs a positive int")
        if not isinstance(pct_start, (int, float)) or not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR(pct_start): got {pct_start!r}, needs a number from 0 to 1")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR(anneal_strategy): got {anneal_strategy!r}, needs 'cos' or 'linear'")
        groups = optimizer.param_groups
        self.total_steps = total_steps
        # The names are PyTorch's, because `state_dict` contains these attributes. A phase holds the step at which it ends,
        # and the settings of the groups with its first and last rate and its first and last momentum.
        self._anneal_func_type = anneal_strategy
        top = float(pct_start * total_steps) - 1
        up = _phase(top, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if three_phase:
            self._schedule_phases = [
                up,
                _phase(
                    2 * pct_start * total_steps - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"
                ),
                _phase(total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            self._schedule_phases = [
                up,
                _phase(total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"),
            ]
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for group, highest in zip(
                groups, per_group("OneCycleLR", "max_lr", max_lr, len(groups)), strict=True
            ):
                group["initial_lr"] = highest / div_factor
                group["max_lr"] = highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            if not all("momentum" in group or "betas" in group for group in groups):
                raise ValueError(
                    "OneCycleLR(cycle_momentum): the optimizer has neither 'momentum' nor 'betas'"
                )
            self.use_beta1: bool = "betas" in optimizer.defaults  # only PyTorch reads this entry of the state
            lows = per_group("OneCycleLR", "base_momentum", base_momentum, len(groups))
            highs = per_group("OneCycleLR", "max_momentum", max_momentum, len(groups))
            if last_epoch == -1:
                for group, low, high in zip(groups, lows, highs, strict=True):
                    set_momentum(group, high)
                    group["base_momentum"] = low
                    group["max_momentum"] = high
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return start + (end - start) * part
        return end + (start - end) / 2 * (1 + math.cos(math.pi * part))

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"OneCycleLR.step(): got step {step + 1}, but the schedule has only {self.total_steps} steps"
            )
        phases = self._schedule_phases
        number = next((i for i, one in enumerate(phases) if step <= one["end_step"]), len(phases) - 1)
        phase = phases[number]
        begin, end = phases[number - 1]["end_step"] if number else 0.0, phase["end_step"]
        rates = []
        part = (step - begin) / (end - begin) if end != begin else 1.0
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                start, last = group[phase["start_momentum"]], group[phase["end_momentum"]]
                set_momentum(group, self._between(start, last, part))
        return rates


def _phase(
    end_step: float, start_lr: str, end_lr: str, start_momentum: str, end_momentum: str
) -> dict[str, Any]:
    return {
        "end_step": end_step,
        "start_lr": start_lr,
        "end_lr": end_lr,
        "start_momentum": start_momentum,
        "end_momentum": end_momentum,
    }


def set_momentum(group: dict[str, Any], momentum: float) -> None:
    """Set the momentum of a group. For Adam, the momentum is the first element of "betas"."""
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum
