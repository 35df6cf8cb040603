"""Checkpointing, which trades time for memory: saved tensors are discarded, and the backward pass computes them again.

T. Chen et al., "Training deep nets with sublinear memory cost", 2016.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import rushlight_core as core
from rushlight_autograd._backward import backward
from rushlight_autograd._C import _set_parallel_branches
from rushlight_autograd.function import Function, once_differentiable
from rushlight_autograd.graph import saved_tensors_hooks
from rushlight_core import Tensor
from rushlight_core.amp._autocast import CurrentAutocast
from rushlight_core.seams.control_flow import active_recorder

__all__ = [
    "CheckpointError",
    "DefaultDeviceType",
    "checkpoint",
    "checkpoint_sequential",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "get_device_states",
    "set_device_states",
]

Contexts = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]


class CheckpointError(RuntimeError):
    """Raised if the second run of a checkpointed function does not save the same tensors as the first run.

    Example:
        >>> sizes = iter([2, 3])
        >>> x = torch.ones(3, requires_grad=True)
        >>> def changing(x):
        ...     return (x[: next(sizes)].exp()).sum()
        >>> torch.utils.checkpoint.checkpoint(changing, x, use_reentrant=False).backward()
        Traceback (most recent call last):
            ...
        rushlight_autograd.checkpoint.CheckpointError: ...
    """


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Return two context managers that do nothing, for the first and the second run of the function."""
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Contexts = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Return ``function(*args, **kwargs)`` without storing the tensors that the backward pass needs.

    The backward pass runs the function again, which saves memory but takes time (Chen et al. 2016). The function must
    compute the same results both times. The second run uses the autocast settings of the first run.

    Args:
        function: the function.
        args, kwargs: its arguments.
        use_reentrant: whether to run a separate backward pass inside the backward pass. If True, tensors in containers get
            no gradient, keyword arguments are not accepted, `autograd.grad` does not work, and at least one tensor among
            `args` must require grad. False by default.
        context_fn: a function that returns two context managers, for the first and the second computation.
        determinism_check: "default" raises CheckpointError if shapes or dtypes differ between the two
            computations; "none" does not check.
        debug: has no effect, because errors always name the tensor that differs.
        early_stop: end the second computation as soon as it has computed all tensors that the backward pass
            needs.
        preserve_rng_state: restore the random state for the second computation, so that both computations
            draw the same random numbers. A captured program stores the tensors of a function that draws random
            numbers, and computes the function once.

    Shape:
        - Tensors may have any shape.

    Raises:
        ValueError: an argument is not valid, or cannot be combined with `use_reentrant`.
        CheckpointError: the function does not compute the same tensors again (raised in the backward pass).

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> y = torch.utils.checkpoint.checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
        >>> y.sum().backward()
        >>> x.grad
        tensor([ 1.2534, -1.0331])
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"checkpoint(determinism_check): must be 'default' or 'none', got {determinism_check!r}"
        )
    if not use_reentrant:
        return _checkpoint_by_hooks(
            function, args, kwargs, context_fn, determinism_check == "default", preserve_rng_state, early_stop
        )
    if kwargs:
        raise ValueError(
            f"checkpoint(use_reentrant=True): takes no keyword arguments, got {', '.join(kwargs)}"
        )
    if context_fn is not noop_context_fn:
        raise ValueError("checkpoint(context_fn): requires use_reentrant=False")
    return ReentrantCheckpoint.apply(function, preserve_rng_state, *args)


_early_stop: bool | None = None  # None: the argument of each call applies


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Return a context manager within which `enable` overrides the argument `early_stop` of `checkpoint`.

    Args:
        enable: the value.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        ...     torch.utils.checkpoint.checkpoint(torch.exp, x, use_reentrant=False).sum().backward()
    """
    global _early_stop
    former, _early_stop = _early_stop, bool(enable)
    try:
        yield
    finally:
        _early_stop = former


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Return a context manager that has no effect, because errors of `checkpoint` always name the tensor that differs.

    Args:
        enabled: accepted for compatibility.

    Example:
        >>> with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):
        ...     pass
    """
    yield


class DefaultDeviceType:
    """The device type whose random state `checkpoint` restores if all arguments are on the CPU.

    All devices share one random stream, so the setting has no effect on the random numbers.

    Example:
        >>> DefaultDeviceType.get_device_type()
        'cuda'
    """

    _type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set the type that `get_device_type` returns."""
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        """Return the type that was set. The initial type is "cuda"."""
        return DefaultDeviceType._type


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return the indices of the accelerators of the tensors in `args`, and the states of their random generators.

    All devices share one random stream.

    Args:
        args: tensors and other objects.

    Shape:
        - Tensors may have any shape.

    Example:
        >>> get_device_states(torch.ones(2), "text")  # nothing is on another device
        ([], [])
    """
    devices = sorted(
        {x.get_device() for x in args if isinstance(x, Tensor) and x.device.type not in ("cpu", "meta")}
    )
    return devices, [core.get_rng_state() for _ in devices]


def set_device_states(
    devices: Sequence[Any], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Set the states of the random generators of devices.

    All devices share one random stream, so the last state in `states` sets the stream of all devices.

    Args:
        devices: the devices.
        states: a state for each device.
        device_type: type of the devices.

    Shape:
        - States: (*), as `get_rng_state` returns them.

    Example:
        >>> devices, states = get_device_states(torch.ones(2))
        >>> set_device_states(devices, states)
    """
    if (device_type or DefaultDeviceType.get_device_type()) != "meta":
        for _, state in zip(devices, states, strict=False):
            core.set_rng_state(state)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run a sequence of modules or functions in parts, and use `checkpoint` for each part except the last.

    Args:
        functions: a Sequential or a sequence of callables.
        segments: number of parts. The parts have the same number of functions, except that the last part may have more.
        input: the argument of the first function.
        use_reentrant, kwargs: as for :func:`checkpoint`.

    Shape:
        - Input: the input shape of the first module. Output: the output shape of the last module.

    Raises:
        ValueError: `segments` is less than 1 or exceeds the number of functions.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
        >>> x = torch.randn(3, 4)
        >>> y = torch.utils.checkpoint.checkpoint_sequential(model, 2, x, use_reentrant=False)
        >>> torch.equal(y, model(x))
        True
    """
    chain: Sequence[Callable[..., Any]] = (
        list(functions.children()) if hasattr(functions, "children") else list(functions)
    )
    if not 1 <= segments <= max(len(chain), 1):
        raise ValueError(f"checkpoint_sequential(segments): must be 1 to {len(chain)}, got {segments}")
    length = len(chain) // segments

    def part(begin: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for function in chain[begin:end]:
                value = function(value)
            return value

        return run

    for number in range(segments - 1):
        input = checkpoint(
            part(number * length, (number + 1) * length), input, use_reentrant=use_reentrant, **kwargs
        )
    return part((segments - 1) * length, len(chain))(input)


# --- by hooks on saved tensors ---


class _Slot:
    """A placeholder that a node saves instead of a tensor, which the backward pass computes again."""

    def __init__(self, tensor: Tensor, keep: bool) -> None:
        self.kind = tuple(tensor.shape), tensor.dtype
        self.kept = tensor if keep else None
        self.version = tensor._version


class _Enough(BaseException):
    """Raised when all required tensors have been computed, to end the second run."""


_locks: dict[str, Any] = {}


@contextmanager
def _alone() -> Iterator[None]:
    """Let only one thread recompute at a time, because a recomputation sets the random state of the process.

    Threads that run branches of one backward pass may call this function at the same time. A backward pass
    inside a recomputation runs on one thread only: others would wait for the lock until this pass ends.
    """
    import threading

    with _locks.setdefault("computing", threading.RLock()):
        before = _set_parallel_branches(False)
        try:
            yield
        finally:
            _set_parallel_branches(before)


def _checkpoint_by_hooks(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    context_fn: Contexts,
    check: bool,
    preserve_rng_state: bool,
    early_stop: bool,
) -> Any:
    first_time, again = context_fn()
    if _early_stop is not None:
        early_stop = _early_stop
    state = core.get_rng_state() if preserve_rng_state else None
    same_autocast = CurrentAutocast()
    # The nodes own the slots, so a recomputed tensor is not stored if its node has been destroyed.
    slots: list[weakref.ref[_Slot]] = []
    computed: weakref.WeakKeyDictionary[_Slot, Tensor] = weakref.WeakKeyDictionary()

    # A program draws its random numbers from one stream, and cannot return to an earlier state. So the program that is
    # being captured keeps the tensors of a function that draws random numbers.
    recorder = active_recorder() if state is not None else None

    def pack(tensor: Tensor) -> _Slot:
        slot = _Slot(tensor, recorder is not None)
        slots.append(weakref.ref(slot))
        return slot

    def unpack(slot: _Slot) -> Tensor:
        if slot.kept is not None:
            if slot.kept._version != slot.version:
                raise CheckpointError(
                    "checkpoint(): a captured program needs a tensor of a function that draws random numbers, but the "
                    "tensor was modified in place\nhint: clone() the tensor before it is modified"
                )
            return slot.kept
        if slot not in computed:
            with _alone():
                if slot not in computed:
                    compute_again()
        if slot not in computed:
            raise CheckpointError(
                "checkpoint(): the function saved fewer tensors when it was computed again\n"
                "hint: the function must not depend on state that changes between the two computations"
            )
        return computed.pop(slot)

    def compute_again() -> None:
        number = 0

        def keep(tensor: Tensor) -> None:
            nonlocal number
            if number == len(slots):
                raise CheckpointError(
                    "checkpoint(): the function saved more tensors when it was computed again\n"
                    "hint: the function must not depend on state that changes between the two computations"
                )
            slot = slots[number]()
            number += 1
            if slot is not None:
                kind = tuple(tensor.shape), tensor.dtype
                if check and kind != slot.kind:
                    raise CheckpointError(
                        f"checkpoint(): tensor {number - 1} that the function saved was {slot.kind[1]} of shape"
                        f" {slot.kind[0]}, and {kind[1]} of shape {kind[0]} when it was computed again\n"
                        "hint: the function must not depend on state that changes between the two computations"
                    )
                computed[slot] = tensor
            if early_stop and number == len(slots):
                raise _Enough

        def refuse(_: None) -> Tensor:
            raise CheckpointError(
                "checkpoint(): a function that calls backward() requires use_reentrant=True"
            )

        now = core.get_rng_state() if state is not None else None
        try:
            if state is not None:
                core.set_rng_state(state)
            with same_autocast, again, core.enable_grad(), saved_tensors_hooks(keep, refuse):
                function(*args, **kwargs)
        except _Enough:
            pass
        finally:
            if now is not None:
                core.set_rng_state(now)

    with first_time, saved_tensors_hooks(pack, unpack):
        result = function(*args, **kwargs)
    if recorder is not None and state is not None and _same_bytes(state, core.get_rng_state()):
        for reference in slots:
            slot = reference()
            if slot is not None:
                slot.kept = None
    return result


def _same_bytes(a: Tensor, b: Tensor) -> bool:
    return bool(a.numpy().tobytes() == b.numpy().tobytes())


# --- by a backward pass inside of the backward pass ---


class ReentrantCheckpoint(Function):
    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        ctx.function = function
        ctx.state = core.get_rng_state() if preserve_rng_state else None
        ctx.same_autocast = CurrentAutocast()
        ctx.args = [None if isinstance(x, Tensor) else x for x in args]
        ctx.save_for_backward(*(x for x in args if isinstance(x, Tensor)))
        with core.no_grad():
            return function(*args)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = iter(ctx.saved_tensors)
        wanted = ctx.needs_input_grad[2:]
        args = [x if x is not None else next(saved) for x in ctx.args]
        with core.no_grad():  # use a view, which keeps a tangent; detach() would remove it
            args = [
                x.view_as(x).requires_grad_() if isinstance(x, Tensor) and want else x
                for x, want in zip(args, wanted, strict=True)
            ]
        with _alone():
            now = core.get_rng_state() if ctx.state is not None else None
            try:
                if ctx.state is not None:
                    core.set_rng_state(ctx.state)
                with ctx.same_autocast, core.enable_grad():
                    outputs = ctx.function(*args)
            finally:
                if now is not None:
                    core.set_rng_state(now)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (y, g) for y, g in zip(outputs, grads, strict=True) if isinstance(y, Tensor) and y.requires_grad
        ]
        if not pairs:
            raise RuntimeError("checkpoint(use_reentrant=True): no output of the function requires grad")
        backward([y for y, _ in pairs], [g for _, g in pairs])
        return (
            None,
            None,
            *(
                x.grad if isinstance(x, Tensor) and want else None
                for x, want in zip(args, wanted, strict=True)
            ),
        )
