"""A context manager within which the processes of a group may have different numbers of inputs."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core.seams import collectives

from .._typing import Any

__all__ = ["Join", "JoinHook", "Joinable"]

_MANY_STEPS = 1000


class JoinHook:
    """The base class of hooks that a process calls for a `Joinable` after the process has run out of inputs.

    The methods of this class do nothing; subclasses override them.

    Example:
        >>> from rushlight.distributed.algorithms.join import JoinHook
        >>> class Count(JoinHook):
        ...     steps = 0
        ...     def main_hook(self):
        ...         self.steps += 1
    """

    def main_hook(self) -> None:
        """Take part in the collectives of one step of the processes that still have inputs."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Synchronize the processes after all processes have run out of inputs.

        Args:
            is_last_joiner: whether this process was among the last to run out of inputs.
        """


class Joinable(ABC):
    """Base class of objects that run collectives for each input and can be used in a `Join` context.

    A subclass calls `Joinable.__init__`, and calls `Join.notify_join_context(self)` before the collectives of each
    step.

    Example:
        >>> from rushlight.distributed.algorithms.join import Joinable
        >>> issubclass(torch.nn.parallel.DistributedDataParallel, Joinable)
        True
    """

    def __init__(self) -> None:
        super().__init__()
        self._join_config: _Config = _Config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook for a `Join` context. `kwargs` are the additional keyword arguments of the context."""

    @property
    @abstractmethod
    def join_device(self) -> core.device:
        """The device of the tensors in the collectives of the `Join` context."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group of processes."""


class _Config:
    """The settings of a `Joinable` in a `Join` context. Outside of such a context, `enable` is False."""

    def __init__(self, enable: bool = False, throw: bool = False, is_first: bool = False) -> None:
        self.enable = enable
        self.throw_on_early_termination = throw
        self.is_first_joinable = is_first


class Join:
    """A context manager within which the processes of a group may have different numbers of inputs.

    A process that has run out of inputs calls the hooks of the joinables until all processes have run out of inputs. The
    hooks take part in the collectives of the other processes. Every step begins with a collective that counts the processes
    that still have inputs.

    Args:
        joinables: objects such as `DistributedDataParallel`, in the same order on all processes.
        enable: whether processes may have different numbers of inputs. If False, all processes must have the same number of
            inputs.
        throw_on_early_termination: whether all processes raise RuntimeError as soon as one process has run out of
            inputs.
        kwargs: passed to `join_hook` of each joinable.

    Raises:
        ValueError: there are no joinables, or their groups or devices differ.
        TypeError: an element of `joinables` is not a `Joinable`.

    Example::

        model = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
        with Join([model]):
            for x in inputs:  # the number of inputs differs between ranks
                model(x).sum().backward()
    """

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        for joinable in joinables:
            if not isinstance(joinable, Joinable):
                raise TypeError(f"Join(joinables): needs Joinable objects, got {type(joinable).__name__}")
            if not hasattr(joinable, "_join_config"):
                raise TypeError(
                    f"Join(joinables): {type(joinable).__name__}.__init__ has not called Joinable.__init__"
                )
        group, device = joinables[0].join_process_group, joinables[0].join_device
        if any(joinable.join_process_group is not group for joinable in joinables):
            raise ValueError(
                "Join(joinables): Using join context manager with multiple process groups is not supported"
            )
        if any(joinable.join_device != device for joinable in joinables):
            raise ValueError(
                "Join(joinables): Using join context manager with multiple devices is not supported"
            )
        self._joinables = list(joinables)
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable
        self._throw = throw_on_early_termination
        self._group: collectives.Group = group
        self._device = device

    def __enter__(self) -> None:
        if self._enable:
            for joinable in self._joinables:
                joinable._join_config = _Config(True, self._throw, joinable is self._joinables[0])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._enable:
            return
        for joinable in self._joinables:
            joinable._join_config = _Config()
        if kind is not None:
            return
        steps = 0
        while _count(self._group, self._device, False):
            if self._throw:
                _end_early(self._group, self._device, True)
            for hook in self._hooks:
                hook.main_hook()
            steps += 1
            if steps == _MANY_STEPS:
                warnings.warn(
                    f"Join: another process still has inputs, {_MANY_STEPS} steps after the inputs of this process ended\n"
                    "hint: use DistributedSampler to give every process the same number of samples",
                    stacklevel=2,
                )
        for hook in self._hooks:
            hook.post_hook(steps == 0)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Notify the other processes, before the collectives of a step, that this process begins the step.

        Return the handle of the collective that counts the processes with inputs. Return None if the context is not enabled,
        or if `joinable` is not the first joinable of the context.

        Args:
            joinable: the object whose method calls this function.

        Raises:
            RuntimeError: a process has run out of inputs, and `throw_on_early_termination` is set in the context.
        """
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(
                f"Check that the {type(joinable)} constructor calls the Joinable constructor"
            )
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = _begin_count(group, core.ones(1, dtype=core.int64, device=device))
        if config.throw_on_early_termination:
            _end_early(group, device, False)
        return work


def _begin_count(group: collectives.Group, value: Tensor) -> collectives.Work:
    return group.reduce_tensors([value], "SUM", "processes with inputs")


def _count(group: collectives.Group, device: core.device, has_inputs: bool) -> int:
    """Return the number of processes that have inputs."""
    value = core.full((1,), int(has_inputs), dtype=core.int64, device=device)
    _begin_count(group, value).wait()
    return int(value.item())


def _end_early(group: collectives.Group, device: core.device, ended: bool) -> None:
    """Raise RuntimeError on all processes if one process has run out of inputs."""
    value = core.full((1,), int(ended), dtype=core.int64, device=device)
    group.reduce_tensors([value], "SUM", "processes whose inputs have ended").wait()
    if value.item():
        raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
