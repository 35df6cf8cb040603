"""Averages of the weights of a model during training."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ..module import Module
from .lr_scheduler import LRScheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .optimizer import Optimizer


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Return a function that computes the plain mean of weights (Izmailov et al. 2018).

    The function takes the mean so far, the new value of the same shape, and the number of values in the mean.

    Example:
        >>> average = torch.optim.swa_utils.get_swa_avg_fn()
        >>> average(torch.tensor([1.0]), torch.tensor([4.0]), 2)  # (1 + 1 + 4) / 3
        tensor([2.])
    """

    def average(averaged: Tensor, new: Tensor, count: Any) -> Tensor:
        return averaged + (new - averaged) / (count + 1)

    return average


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Return a function that computes an exponential moving average, ``decay · average + (1 - decay) · new``.

    The function takes the average so far, the new value of the same shape, and a number that is ignored.

    Args:
        decay: the weight of the old average, from 0 to 1.

    Raises:
        ValueError: `decay` is out of range.

    Example:
        >>> average = torch.optim.swa_utils.get_ema_avg_fn(0.9)
        >>> average(torch.tensor([1.0]), torch.tensor([2.0]), 0)
        tensor([1.1000])
    """
    _check_decay("get_ema_avg_fn", decay)

    def average(averaged: Tensor, new: Tensor, count: Any) -> Tensor:
        return averaged * decay + new * (1 - decay)

    return average


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """Return a function that updates a list of means in place, by the formula of :func:`get_swa_avg_fn`.

    Example:
        >>> averages, new = [torch.tensor([1.0])], [torch.tensor([4.0])]
        >>> torch.optim.swa_utils.get_swa_multi_avg_fn()(averages, new, 2)
        >>> averages
        [tensor([2.])]
    """

    def average(averaged: Any, new: Any, count: Any) -> None:
        with core.no_grad():
            for old, value in zip(averaged, new, strict=True):
                _move(old, value, 1 / (float(count) + 1))

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """Return a function that updates a list of averages in place, by the formula of :func:`get_ema_avg_fn`.

    Args:
        decay: the weight of the old averages, from 0 to 1.

    Raises:
        ValueError: `decay` is out of range.

    Example:
        >>> averages, new = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)(averages, new, 0)
        >>> averages
        [tensor([1.1000])]
    """
    _check_decay("get_ema_multi_avg_fn", decay)

    def average(averaged: Any, new: Any, count: Any) -> None:
        with core.no_grad():
            for old, value in zip(averaged, new, strict=True):
                _move(old, value, 1 - decay)

    return average


def _move(average: Tensor, value: Tensor, share: float) -> None:
    # The averages of ints are truncated. Bools have no average, so the new ones are taken.
    if average.is_floating_point() or average.is_complex():
        average.lerp_(value.to(average.dtype), share)
    elif average.dtype == core.bool:
        average.copy_(value)
    else:
        average.copy_(average * (1 - share) + value * share)


def _check_decay(function: str, decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"{function}(decay): got {decay}, needs 0 <= decay <= 1")


class AveragedModel(Module):
    """A copy of a model whose parameters are averages.

    Each call of `update_parameters` updates the averages with the current parameters of the model. Calling an
    `AveragedModel` calls the copy, which has the averaged parameters.

    Args:
        model: the model to average.
        device: the device of the averages.
        avg_fn: a function that returns the new average of a tensor. Its arguments are the old average, the model's tensor,
            which has the same shape, and the number of previous updates. By default, the plain mean is computed.
        multi_avg_fn: a function that updates a list of averages in place, as an alternative to `avg_fn`. Its
            arguments are the list of averages, the list of the model's tensors, and the number of previous
            updates.
        use_buffers: whether to average the buffers, too. If False, the buffers are copied from the model.

    Raises:
        AssertionError: both `avg_fn` and `multi_avg_fn` are given.

    Example:
        >>> from rushlight.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
        >>> model = nn.Linear(1, 1, bias=False)
        >>> averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
        >>> for value in (1.0, 2.0):
        ...     _ = nn.init.constant_(model.weight, value)
        ...     averaged.update_parameters(model)
        >>> averaged.module.weight.item()
        1.100000023841858
    """

    module: Module

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[Any, Any, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError(
                "AveragedModel(avg_fn, multi_avg_fn): got both, at most one of them may be given"
            )
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", core.tensor(0, dtype=core.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def _averaged_tensors(self, model: Any) -> list[Tensor]:
        tensors = model.parameters()
        return list(itertools.chain(tensors, model.buffers()) if self.use_buffers else tensors)

    def update_parameters(self, model: Module) -> None:
        """Update the averages with the parameters of `model`. The first call copies the parameters."""
        ours, theirs = self._averaged_tensors(self.module), self._averaged_tensors(model)
        values = [new.detach().to(old.device) for old, new in zip(ours, theirs, strict=True)]
        with core.no_grad():
            if int(self.n_averaged) == 0:
                for old, new in zip(ours, values, strict=True):
                    old.copy_(new)
            elif self.avg_fn is None:
                average = self.multi_avg_fn or get_swa_multi_avg_fn()
                average([old.detach() for old in ours], values, self.n_averaged)
            else:
                for old, new in zip(ours, values, strict=True):
                    old.copy_(self.avg_fn(old.detach(), new, self.n_averaged))
            if not self.use_buffers:
                for old, new in zip(self.module.buffers(), model.buffers(), strict=True):
                    old.copy_(new.detach().to(old.device))
            self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of all batch normalisation layers as means over the batches of `loader`.

    Args:
        loader: an iterable of batches. If a batch is a list or tuple, its first element is the input.
        model: the model, which is called with the input of every batch.
        device: the device to which each input is moved before the call.

    Example:
        >>> model = nn.BatchNorm1d(1)
        >>> torch.optim.swa_utils.update_bn([torch.tensor([[1.0], [3.0]]), torch.tensor([[3.0], [5.0]])], model)
        >>> model.running_mean
        tensor([3.])
    """
    from ..layers.norm import _BatchNorm

    norms = [m for m in model.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    with core.no_grad():
        for batch in loader:
            input = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(input if device is None else input.to(device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """A schedule that anneals the rate to `swa_lr` and then keeps it constant, for weight averaging (Izmailov et al. 2018).

    Args:
        optimizer: the optimizer whose learning rates are set.
        swa_lr: the final rate, one number for all groups or a list with one for each group.
        anneal_epochs: number of epochs in which the rate is annealed.
        anneal_strategy: "cos" or "linear".
        last_epoch: the last completed epoch, from which the schedule continues; -1 starts a new schedule.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
        >>> scheduler = torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.1, anneal_epochs=2, anneal_strategy="linear")
        >>> for epoch in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(scheduler.get_last_lr())
        [0.3]
        [0.1]
        [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        from .lr_scheduler.base import per_group

        rates = per_group("SWALR", "swa_lr", swa_lr, len(optimizer.param_groups))
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"SWALR(anneal_strategy): got {anneal_strategy!r}, needs 'cos' or 'linear'")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"SWALR(anneal_epochs): got {anneal_epochs}, needs an int of at least 0")
        self.anneal_epochs = anneal_epochs
        self.anneal_strategy = anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: int) -> float:
        """Return the fraction of the annealing that is completed, from 0 to 1."""
        done = min(1.0, max(0.0, epoch / max(1, self.anneal_epochs)))
        return done if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * done)) / 2

    def get_lr(self) -> list[float]:
        """Return the next rates, which depend on the current rates and the number of calls of `step`.

        The argument `epoch` of `step` has no effect on the rates.
        """
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(max(0, step - 1)), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            target, rate = group["swa_lr"], float(group["lr"])
            start = target if before == 1 else (rate - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates


__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]
