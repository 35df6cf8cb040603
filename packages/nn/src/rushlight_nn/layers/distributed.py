"""DistributedDataParallel, a wrapper that trains a module in several processes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core.futures import Future
from rushlight_core.seams import collectives

from .._typing import Any, NoReturn
from ..module import Module
from .buckets import CommHook, GradBucket, check_hook, flatten
from .join import Join, Joinable, JoinHook

__all__ = ["DistributedDataParallel"]

_MB = 1 << 20
_FIRST_BUCKET = _MB  # small, so that the first reduction begins early


class DistributedDataParallel(Module, Joinable):
    """A wrapper that trains a module in several processes, each with a copy of the module and a part of each batch.

    The constructor copies the parameters and buffers of rank 0 to all ranks. After `backward`, the gradients on every
    rank are the mean over all ranks, so that the copies remain equal if all ranks use the same optimizer. A thread that
    runs without the global interpreter lock sums the gradients during the backward pass. The gradients are summed in
    buckets, which follow the order in which rank 0 computed the gradients in the first backward pass. The
    sums are computed in place, without a second copy of the gradients, unless a hook that was registered with
    `register_comm_hook` computes them.

    The names of parameters begin with `module.`. Use the context manager `no_sync` around forward and
    backward passes whose gradients are accumulated on this rank only. Use the context manager `join` around a
    training loop if the number of batches differs between ranks.

    Args:
        module: the module. Its parameters and buffers must have the same names, shapes, dtypes and `requires_grad` on all
            ranks.
        device_ids, output_device: must be None. The module is called on the device of its parameters.
        dim: the dimension of the batch. `dim` has no effect, because the module is on one device.
        broadcast_buffers: whether the buffers of rank 0 are copied to all ranks before each forward pass outside of
            `no_sync`. None means True.
        forward_sync_buffers: another name of `broadcast_buffers`.
        init_sync: whether to check that all ranks have the same parameters and buffers, and to copy the values of rank 0.
        process_group: the group of processes. None selects the group of all processes.
        bucket_cap_mb: the maximum size of a bucket in MiB, by default 25. The first bucket has at most 1 MiB.
            A parameter that exceeds the maximum size has its own bucket.
        find_unused_parameters: whether some parameters may get no gradient in a backward pass. In the mean over the ranks, a
            gradient that a rank did not compute counts as zero. If no rank computed the gradient of a parameter, this
            gradient remains unchanged. If `find_unused_parameters` is False, all ranks raise RuntimeError
            when a parameter gets no gradient.
        check_reduction: has no effect, as in PyTorch.
        gradient_as_bucket_view: has no effect, because gradients are always summed in place.
        static_graph: has the same effect as `find_unused_parameters`.
        delay_all_reduce_named_params, param_to_hook_all_reduce, mixed_precision, device_mesh: must be None.
        skip_all_reduce_unused_params: must be False.
        batched_grad_copy: has no effect, because gradients are not copied to buckets.
        bucket_cap_mb_list: must be None.

    Raises:
        RuntimeError: the default process group has not been initialized, the ranks have different parameters or buffers, or
            no parameter requires a gradient.
        ValueError: `device_ids` or `output_device` is given, or both `broadcast_buffers` and
            `forward_sync_buffers` are given.
        NotImplementedError: an argument that must be None or False has another value.

    Shape:
        - Inputs and outputs: the same as for `module`.

    Example::

        dist.init_process_group("gloo", rank=rank, world_size=world_size)
        model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(batch).sum().backward()  # gradients are the mean over all ranks
        optimizer.step()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        *,
        batched_grad_copy: bool = False,
        bucket_cap_mb_list: Sequence[float] | None = None,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        if device_ids or output_device is not None:
            raise ValueError(
                "DistributedDataParallel(device_ids, output_device): must be None, "
                f"got {device_ids} and {output_device}"
            )
        for name, value in {
            "delay_all_reduce_named_params": delay_all_reduce_named_params,
            "param_to_hook_all_reduce": param_to_hook_all_reduce,
            "mixed_precision": mixed_precision,
            "device_mesh": device_mesh,
            "skip_all_reduce_unused_params": skip_all_reduce_unused_params or None,
            "bucket_cap_mb_list": bucket_cap_mb_list,
        }.items():
            if value is not None:
                raise NotImplementedError(f"DistributedDataParallel({name}): not supported, got {value!r}")
        if broadcast_buffers is not None and forward_sync_buffers is not None:
            raise ValueError(
                "DistributedDataParallel(): broadcast_buffers and forward_sync_buffers are two names of one argument: "
                "pass only one of them"
            )
        synced = forward_sync_buffers if broadcast_buffers is None else broadcast_buffers
        group = collectives.default_group() if process_group is None else process_group
        if group is None:
            raise RuntimeError(
                "DistributedDataParallel(): the default process group has not been initialized\n"
                "hint: call torch.distributed.init_process_group() first"
            )
        if not isinstance(group, collectives.Group):
            raise TypeError(
                f"DistributedDataParallel(process_group): must be a group, got {type(group).__name__}"
            )
        ignored = frozenset(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = {name: p for name, p in module.named_parameters() if name not in ignored}
        trained = {name: p for name, p in named.items() if p.requires_grad}
        if init_sync:  # before errors that only this rank raises, because other ranks would wait for it here
            _compare(group, named, _buffers(module, ignored))
        if not trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a "
                "gradient."
            )
        self.module = module
        self.process_group: Any = group
        self.device_ids: None = None
        self.output_device: None = None
        self.dim: int = dim
        self.broadcast_buffers: bool = synced is not False
        self._divide_by_initial_world_size: bool = True
        self.find_unused_parameters: bool = find_unused_parameters
        self.gradient_as_bucket_view: bool = gradient_as_bucket_view
        self.static_graph: bool = static_graph
        self.require_backward_grad_sync: bool = True
        self._ignored: frozenset[str] = ignored
        if init_sync:
            group.broadcast_tensors(
                [*named.values(), *self._buffers_of_module().values()], 0, "parameters and buffers"
            ).wait()
        cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MB)
        self._reducer: _Reducer = _Reducer(group, trained, cap, find_unused_parameters or static_graph)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the group, the hook and the unfinished sums, all of which belong to this process."""
        reducer = self._reducer
        state = self.__dict__.copy()
        del state["process_group"]
        state["_reducer"] = (reducer.names, reducer.cap, reducer.unused)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a state. The restored module uses the group of all processes."""
        super().__setstate__(state)
        group = collectives.default_group()
        if group is None:
            raise RuntimeError(
                "DistributedDataParallel: the default process group has not been initialized\n"
                "hint: call torch.distributed.init_process_group() before copying or loading the module"
            )
        names, cap, unused = state["_reducer"]
        parameters = dict(self.module.named_parameters())
        self.process_group = group
        self._reducer = _Reducer(group, {name: parameters[name] for name in names}, cap, unused)

    def _buffers_of_module(self) -> dict[str, Tensor]:
        return _buffers(self.module, self._ignored)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        sync = self.require_backward_grad_sync
        root = 0
        if self._join_config.enable:
            Join.notify_join_context(self)
            step = self._begin_step(True, sync and core.is_grad_enabled(), sync)
            root = step.root
            self._reducer.join(root, None if self._divide_by_initial_world_size else step.ranks)
        if core.is_grad_enabled():
            self._reducer.begin(sync)
        if sync:
            self._sync_buffers(root)
        return self.module(*inputs, **kwargs)

    def _sync_buffers(self, root: int) -> None:
        if self.broadcast_buffers and (buffers := self._buffers_of_module()):
            self.process_group.broadcast_tensors(list(buffers.values()), root, "buffers").wait()

    def _begin_step(self, has_inputs: bool, backward: bool, buffers: bool) -> _Step:
        """Exchange what the ranks do in the next step of a `join` context, and return the common `_Step`.

        The arguments describe this rank: whether it still has inputs, runs a backward pass, copies buffers.
        """
        group = self.process_group
        mine = core.zeros(group.size() + 2, dtype=core.int64)
        mine[group.rank()] = int(has_inputs)
        mine[-2], mine[-1] = int(backward), int(buffers)
        group.reduce_tensors([mine], "SUM", "step in a join context").wait()
        *ranks, backward_ranks, buffer_ranks = mine.tolist()
        active = [rank for rank, count in enumerate(ranks) if count]
        return _Step(max(active, default=0), len(active), backward_ranks > 0, buffer_ranks > 0)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Return a context manager within which forward and backward passes accumulate gradients on this rank only.

        The first backward pass after the block sums the accumulated gradients over the ranks.
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """Return a context manager for a training loop in which the number of batches differs between ranks.

        A rank that has no more batches takes part in the collectives of the other ranks, and contributes gradients of zero.
        At the end, the parameters and buffers of a rank that had the most batches are copied to all ranks. Each step
        requires two additional collectives. The states of optimizers are not synchronized.

        Args:
            divide_by_initial_world_size: whether gradients are divided by the number of all ranks. If False, gradients are
                divided by the number of ranks that still have batches. A hook that was registered with `register_comm_hook`
                must divide the gradients itself.
            enable: whether the context has an effect.
            throw_on_early_termination: whether all ranks raise RuntimeError when one rank has no more batches.

        Example::

            with model.join():
                for x in batches:  # the number of batches differs between ranks
                    model(x).sum().backward()
        """
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook for a `Join` context. See :meth:`join` for `divide_by_initial_world_size`."""
        self._divide_by_initial_world_size = kwargs.get("divide_by_initial_world_size", True)
        return _JoinHook(self)

    @property
    def join_device(self) -> core.device:
        """The device of the tensors in the collectives of the `Join` context."""
        return core.device("cpu")

    @property
    def join_process_group(self) -> Any:
        """The group of processes."""
        return self.process_group

    def register_comm_hook(self, state: object, hook: CommHook) -> None:
        """Register a hook that reduces the gradients. Without a hook, gradients are averaged over all ranks.

        `hook(state, bucket)` is called with a `GradBucket` when all gradients of the bucket have been
        computed. The hook returns a `torch.futures.Future` of a tensor with as many elements as the bucket.
        This tensor is copied to the gradients. All ranks must register the same hook. If the hook raises an
        error on one rank, all ranks raise an error. A copied or unpickled module has no hook.

        Args:
            state: an object that is passed to the hook.
            hook: a function, for example from `torch.distributed.algorithms.ddp_comm_hooks.default_hooks`.

        Raises:
            RuntimeError: a hook is already registered, or a backward pass is running.
            TypeError: `hook` is not callable.
            ValueError: the annotations of the hook name types other than `GradBucket` and
                `torch.futures.Future[torch.Tensor]`.

        Example::

            from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

            model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        """
        check_hook(hook)
        self._reducer.set_hook(state, hook)


class _Step:
    """The next training step of all ranks in a `join` context.

    `ranks` is the number of ranks that still have inputs, and `root` is the largest of these ranks. `backward` states
    whether any rank reduces gradients in this step, and `buffers` states whether the buffers of `root` are copied to all
    ranks.
    """

    def __init__(self, root: int, ranks: int, backward: bool, buffers: bool) -> None:
        self.root, self.ranks, self.backward, self.buffers = root, ranks, backward, buffers


class _JoinHook(JoinHook):
    """A hook with which a rank that has no more batches takes part in the steps of the other ranks."""

    def __init__(self, model: DistributedDataParallel) -> None:
        self.model = model

    def main_hook(self) -> None:
        model = self.model
        step = model._begin_step(False, False, False)
        if step.buffers:
            model._sync_buffers(step.root)
        if step.backward:
            model._reducer.join(step.root, None if model._divide_by_initial_world_size else step.ranks)
            model._reducer.follow()

    def post_hook(self, is_last_joiner: bool) -> None:
        model = self.model
        root = model._begin_step(is_last_joiner, False, False).root
        named = {name: p for name, p in model.module.named_parameters() if name not in model._ignored}
        tensors = [*named.values(), *model._buffers_of_module().values()]
        model.process_group.broadcast_tensors(tensors, root, "parameters and buffers").wait()
        model._reducer.join(0, None)


def _buffers(module: Module, ignored: frozenset[str]) -> dict[str, Tensor]:
    return {name: b for name, b in module.named_buffers() if name not in ignored}


def _compare(group: Any, parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor]) -> None:
    """Raise RuntimeError on all ranks if the parameters or buffers of a rank differ from those on rank 0.

    Names, shapes, dtypes and `requires_grad` are compared, and the error names the first tensor that differs.
    """
    mine = [_describe("parameter", name, parameter) for name, parameter in parameters.items()]
    mine += [_describe("buffer", name, buffer) for name, buffer in buffers.items()]
    first = group.broadcast_object(mine, 0, "descriptions of parameters")
    wrong = core.tensor([0 if mine == first else group.rank()])
    group.reduce_tensors([wrong], "MAX", "comparison of parameters").wait()
    rank = int(wrong.item())
    if rank == 0:
        return
    other = group.broadcast_object(mine, rank, "descriptions of parameters that differ")
    pairs = zip_longest(first, other, fillvalue="no further parameter or buffer")
    expected, found = next(pair for pair in pairs if pair[0] != pair[1])
    raise RuntimeError(
        "DistributedDataParallel(module): DDP expects same model across all ranks, but rank "
        f"{rank} has other parameters or buffers than rank 0:\n"
        f"  rank 0: {expected}\n  rank {rank}: {found}\n"
        "hint: create the module and set requires_grad in the same way on all ranks"
    )


def _describe(kind: str, name: str, tensor: Tensor) -> str:
    return (
        f"{kind} {name!r} of shape {tuple(tensor.shape)} and dtype {tensor.dtype}, "
        f"requires_grad={tensor.requires_grad}"
    )


class _Reducer:
    """Sums gradients over the ranks as the backward pass computes them.

    A bucket is a list of indices of parameters whose gradients are summed in one collective. The buckets have the same
    order on all ranks. The collective of a bucket starts when all gradients of the bucket have been computed and the
    collectives of all earlier buckets have started. The remaining collectives start at the end of the backward pass. In the
    first pass there are no buckets yet, so all collectives start at the end.
    """

    def __init__(self, group: Any, parameters: Mapping[str, Tensor], cap: int, unused: bool) -> None:
        self.group = group
        self.names: list[str] = list(parameters)
        self.parameters: list[Tensor] = list(parameters.values())
        self.cap: int = cap
        self.unused: bool = unused  # whether some parameters may get no gradient
        self.sync: bool = True  # whether the last forward pass was outside of no_sync
        self.buckets: list[list[int]] = []  # empty before the first pass
        self.bucket_of: dict[int, int] = {}
        self.passes: int = 0
        self.local: set[int] = set()  # parameters whose gradients were computed under no_sync
        self.root: int = 0  # the rank whose order of gradients determines the buckets
        self.divisor: int | None = None  # divisor of the sums; None is the number of ranks
        self.hook: tuple[object, CommHook] | None = None
        self.lock = threading.RLock()
        self._restart()
        reference = weakref.ref(self)
        for number, parameter in enumerate(self.parameters):
            parameter.register_post_accumulate_grad_hook(_hook(reference, number))

    def _restart(self) -> None:
        self.ready: dict[int, None] = {}  # parameters in the order in which their gradients were computed
        self.running: bool = False  # whether a backward pass is running
        self.missing: list[int] = [len(bucket) for bucket in self.buckets]
        self.works: list[Any] = []
        self.futures: list[tuple[Future[Tensor], list[Tensor]]] = []  # results of hooks, with the gradients
        self.stand_ins: dict[int, Tensor] = {}

    def begin(self, sync: bool) -> None:
        """After a forward pass, prepare for the backward pass."""
        with self.lock:
            self.sync = sync
            if self.running and sync:  # the last backward pass did not finish, because it raised an error
                self.passes += 1
                self._restart()

    def join(self, root: int, divisor: int | None) -> None:
        """Set how gradients are reduced in the next step of a `join` context.

        The buckets follow the order in which the rank `root` computes its gradients. Sums are divided by
        `divisor`, or by the number of ranks if it is None.
        """
        with self.lock:
            self.root, self.divisor = root, divisor

    def set_hook(self, state: object, hook: CommHook) -> None:
        """Set the hook that reduces the gradients, beginning with the next backward pass."""
        with self.lock:
            if self.hook is not None:
                raise RuntimeError(
                    "register_comm_hook or register_builtin_comm_hook can only be called once."
                )
            if self.running:
                raise RuntimeError(
                    "DistributedDataParallel.register_comm_hook(): a backward pass is running or has raised an error\n"
                    "hint: register the hook before the first pass"
                )
            self.hook = state, hook

    def add(self, number: int) -> None:
        """Record that the gradient of a parameter has been computed."""
        with self.lock:
            if not self.sync:
                self.local.add(number)
                return
            if not self.running:
                self.running = True
                core.autograd.Variable._execution_engine.queue_callback(self.finish)  # type: ignore[attr-defined]
            if number in self.ready:
                raise RuntimeError(
                    f"DistributedDataParallel: the parameter {self.names[number]!r} got two gradients in one backward pass\n"
                    "hint: reentrant checkpoints that share parameters cause this error; pass use_reentrant=False"
                )
            self.ready[number] = None
            if self.buckets:
                self.missing[self.bucket_of[number]] -= 1
                self._launch()

    def _launch(self) -> None:
        while len(self.works) < len(self.buckets) and self.missing[len(self.works)] == 0:
            at = len(self.works)
            gradients = [self._gradient(number) for number in self.buckets[at]]
            self._refuse_sparse(at, gradients)
            label = f"gradients of pass {self.passes}, bucket {at} of {len(self.buckets)}"
            if self.hook is not None:
                self.works.append(None)
                self._call_hook(at, gradients)
                continue
            op = "AVG" if self.divisor is None else "SUM"
            self.works.append(self.group.reduce_tensors(gradients, op, label))

    def _call_hook(self, at: int, gradients: list[Tensor]) -> None:
        assert self.hook is not None
        state, hook = self.hook
        parameters = [self.parameters[number] for number in self.buckets[at]]
        bucket = GradBucket(at, len(self.buckets), flatten(gradients), parameters)
        try:
            with core.no_grad():
                future = hook(state, bucket)
            if not isinstance(future, Future):
                raise TypeError(f"must return a torch.futures.Future, got {type(future).__name__}")
        except Exception as error:
            self._abort_hook(error)
        self.futures.append((future, gradients))

    def _abort_hook(self, error: Exception) -> NoReturn:
        _, hook = self.hook or (None, None)
        name = getattr(hook, "__name__", type(hook).__name__)
        text = f"DistributedDataParallel: the communication hook {name} raised on rank {self.group.rank()}: {error!r}"
        self.group.abort(text)  # other ranks would wait for the collectives of this hook
        raise RuntimeError(text) from error

    def _take_over(self) -> None:
        """Wait for the results of the hook, and copy them to the gradients."""
        for future, gradients in self.futures:
            try:
                result = future.wait()
                if isinstance(result, (list, tuple)) and len(result) == 1:
                    result = result[0]
                count = sum(gradient.numel() for gradient in gradients)
                if not isinstance(result, Tensor) or result.numel() != count:
                    got = (
                        f"{result.numel()} elements" if isinstance(result, Tensor) else type(result).__name__
                    )
                    raise TypeError(f"must return a Future of a tensor with {count} elements, got {got}")
            except Exception as error:
                self._abort_hook(error)
            with core.no_grad():
                parts = result.reshape(-1).split([gradient.numel() for gradient in gradients])
                for gradient, part in zip(gradients, parts, strict=True):
                    gradient.copy_(part.view(gradient.shape))

    def _refuse_sparse(self, bucket: int, gradients: Sequence[Tensor]) -> None:
        for number, gradient in zip(self.buckets[bucket], gradients, strict=True):
            if gradient.is_sparse:
                text = f"DistributedDataParallel: the gradient of {self.names[number]!r} is sparse, which is not supported"
                self.group.abort(text)
                raise NotImplementedError(f"{text}\nhint: Embedding(sparse=False) has dense gradients")

    def _gradient(self, number: int) -> Tensor:
        gradient = self.stand_ins.get(number, self.parameters[number].grad)
        assert gradient is not None
        return gradient

    def finish(self) -> None:
        """Sum the remaining buckets at the end of the backward pass, and wait for all sums."""
        with self.lock:
            absent = sorted(set(range(len(self.parameters))) - set(self.ready))
            if absent and not self.unused:
                self._refuse(absent)
            for number in absent:
                before = self.parameters[number].grad
                self.stand_ins[number] = self._zeros(number) if before is None else before.clone()
            used = core.zeros(len(self.parameters), dtype=core.uint8)
            for number in {*self.ready, *self.local}:
                used[number] = 1
            self._reduce_rest(absent, used)
            for number, mean in self.stand_ins.items():
                parameter = self.parameters[number]
                if not used[number]:
                    continue
                if parameter.grad is None:
                    parameter.grad = mean
                else:
                    parameter.grad.copy_(mean)
            self.passes += 1
            self.local.clear()
            self._restart()

    def follow(self) -> None:
        """Take part in a backward pass of the other ranks. This rank contributes zeros, and its gradients do not change."""
        with self.lock:
            self._restart()
            absent = list(range(len(self.parameters)))
            self.stand_ins = {number: self._zeros(number) for number in absent}
            self._reduce_rest(absent, core.zeros(len(self.parameters), dtype=core.uint8))
            self.passes += 1
            self._restart()

    def _zeros(self, number: int) -> Tensor:
        return core.zeros_like(self.parameters[number].detach())

    def _reduce_rest(self, absent: list[int], used: Tensor) -> None:
        """Start the remaining collectives, and wait for all collectives.

        `absent` contains the indices of the parameters whose gradients were not computed. For these parameters, the tensors
        in `self.stand_ins` are summed.

        If `self.unused` is true, set the element of `used` to 1 for each parameter that any rank has used.
        """
        ready = set(absent)
        if not self.buckets:
            self._divide(self.group.broadcast_object([*self.ready, *absent], self.root, "order of gradients"))
            ready.update(self.ready)
        for number in ready:
            self.missing[self.bucket_of[number]] -= 1
        self._launch()
        works = [work for work in self.works if work is not None]
        if self.unused:
            works.append(self.group.reduce_tensors([used], "MAX", f"used in pass {self.passes}"))
        for work in works:
            work.wait()
        self._take_over()
        if self.divisor is not None and self.hook is None:
            with core.no_grad():
                for number in range(len(self.parameters)):
                    self._gradient(number).div_(self.divisor)

    def _refuse(self, absent: list[int]) -> None:
        listed = ", ".join(repr(self.names[number]) for number in absent[:10])
        more = f" and {len(absent) - 10} more" if len(absent) > 10 else ""
        text = (
            f"DistributedDataParallel: on rank {self.group.rank()} the parameters {listed}{more} got no gradient in the "
            "backward pass\nhint: pass find_unused_parameters=True if not every pass uses all parameters"
        )
        self.group.abort(text)  # ranks that have these gradients would wait for this rank
        raise RuntimeError(text)

    def _divide(self, order: list[int]) -> None:
        """Divide the parameters, in the given order, into buckets of limited size, each with a single dtype."""
        size = 0
        for number in order:
            parameter = self.parameters[number]
            nbytes = parameter.numel() * parameter.element_size()
            cap = min(self.cap, _FIRST_BUCKET) if len(self.buckets) <= 1 else self.cap
            last = self.buckets[-1] if self.buckets else None
            if last is None or size + nbytes > cap or self.parameters[last[0]].dtype != parameter.dtype:
                self.buckets.append([])
                size = 0
            self.buckets[-1].append(number)
            self.bucket_of[number] = len(self.buckets) - 1
            size += nbytes
        self.missing = [len(bucket) for bucket in self.buckets]


def _hook(reference: weakref.ref[_Reducer], number: int) -> Callable[[Tensor], None]:
    def call(_: Tensor) -> None:
        reducer = reference()
        if reducer is not None:
            reducer.add(number)

    return call
