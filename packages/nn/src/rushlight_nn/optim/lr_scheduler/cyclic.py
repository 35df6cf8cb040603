"""The cyclic schedule."""

from __future__ import annotations

import math
from types import FunctionType

from ..optimizer import Optimizer
from .base import LRScheduler, per_group, set_rate
from .one_cycle import set_momentum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MODES = ("triangular", "triangular2", "exp_range")


class CyclicLR(LRScheduler):
    """A schedule in which the rate rises from `base_lr` to `max_lr` and falls again, in cycles (Smith 2017).

    Call `step` after every batch.

    Args:
        optimizer: the optimizer whose learning rates are set; with `cycle_momentum`, its groups must have "momentum" or
            "betas".
        base_lr, max_lr: the lowest and the highest rate, one number for all groups or a list with one for each group.
        step_size_up: number of steps in which the rate rises.
        step_size_down: number of steps in which the rate falls; `step_size_up` by default.
        mode: how the amplitude of the cycle changes. "triangular" keeps the amplitude, "triangular2" halves
            it after each cycle, and "exp_range" multiplies it by gamma^step.
        gamma: the factor per step for "exp_range".
        scale_fn: a function that returns the factor by which the amplitude is multiplied; it replaces `mode`.
        scale_mode: the argument of `scale_fn`: the number of the current cycle ("cycle"), or the number of steps so far
            ("iterations").
        cycle_momentum: whether to also change the momentum, from `max_momentum` at the lowest rate to
            `base_momentum` at the highest rate.
        base_momentum, max_momentum: the smallest and the largest momentum, one number for all groups or a list with one for
            each group.
        last_epoch: the last completed epoch, from which the schedule continues; -1 starts a new schedule.

    Raises:
        ValueError: an argument is out of range, or `cycle_momentum` is set but the optimizer has no momentum.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)
        >>> scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.0, max_lr=1.0, step_size_up=2)
        >>> rates = []
        >>> for step in range(6):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.0, 0.5, 1.0, 0.5, 0.0, 0.5]
    """

    mode: str
    gamma: float
    scale_fn: Callable[[float], float] | None

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        groups = optimizer.param_groups
        if mode not in _MODES and scale_fn is None:
            raise ValueError(
                f"CyclicLR(mode): got {mode!r}, needs one of {', '.join(map(repr, _MODES))}, or a scale_fn"
            )
        lows = per_group("CyclicLR", "base_lr", base_lr, len(groups))
        self.max_lrs: list[Any] = per_group("CyclicLR", "max_lr", max_lr, len(groups))
        down = step_size_up if step_size_down is None else step_size_down
        if step_size_up <= 0 or down < 0:
            raise ValueError(
                "CyclicLR: step_size_up must be above 0 and step_size_down at least 0, "
                f"got {step_size_up} and {down}"
            )
        self.total_size: float = float(step_size_up + down)
        self.step_ratio: float = step_size_up / self.total_size
        self.mode, self.gamma, self.scale_fn = mode, gamma, scale_fn
        self.scale_mode: str = "iterations" if scale_fn is None and mode == "exp_range" else scale_mode
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for group, low in zip(groups, lows, strict=True):
                set_rate(group, low)
        if cycle_momentum:
            self.use_beta1: bool = "betas" in optimizer.defaults  # only PyTorch reads this entry of the state
            if not all("momentum" in group or "betas" in group for group in groups):
                raise ValueError("CyclicLR(cycle_momentum): the optimizer has neither 'momentum' nor 'betas'")
            self.base_momentums: list[Any] = per_group(
                "CyclicLR", "base_momentum", base_momentum, len(groups)
            )
            self.max_momentums: list[Any] = per_group("CyclicLR", "max_momentum", max_momentum, len(groups))
            if last_epoch == -1:
                for group, low, high in zip(groups, self.base_momentums, self.max_momentums, strict=True):
                    set_momentum(group, high)
                    group["base_momentum"], group["max_momentum"] = low, high
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    _unsaved = ("optimizer", "scale_fn")

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except for the optimizer and `scale_fn`.

        If `scale_fn` is an object other than a function, its attributes are included.
        """
        state = super().state_dict()
        custom = self.scale_fn is not None and not isinstance(self.scale_fn, FunctionType)
        state["_scale_fn_custom"] = dict(vars(self.scale_fn)) if custom else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state that :meth:`state_dict` returned. The optimizer's `load_state_dict` restores the rates."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom", None)
        super().load_state_dict(state)
        if attributes is not None and self.scale_fn is not None:
            vars(self.scale_fn).update(attributes)

    def _scale(self, x: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(x)
        if self.mode == "triangular2":
            return 1 / 2.0 ** (x - 1)
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[float]:
        """Return the rate of each group at `last_epoch`, and set the momentum."""
        cycles = self.last_epoch / self.total_size
        cycle = math.floor(1 + cycles)
        x = 1 + cycles - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            both = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in both:
                set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]
