"""Checkpointing: memory for time. What a function saves is thrown away, and computed again for its gradient.

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
from rushlight_autograd.function import Function
from rushlight_autograd.graph import saved_tensors_hooks
from rushlight_core import Tensor

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
    """A function that did not compute again what it computed first."""


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Nothing around the function, the first time and when it is computed again."""
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
    """function(*args, **kwargs), whose saved tensors are computed again when the backward pass needs them.

    The random generator is set for that to the state it had, unless `preserve_rng_state` is off. The function must compute
    the same both times: other shapes or dtypes raise CheckpointError, unless `determinism_check` is "none".

    With `early_stop` it ends once it has computed the last tensor that is needed; `set_checkpoint_early_stop` overrules it.
    `debug` changes nothing: errors say which tensor differs in any case.

    `use_reentrant` (default False) runs a backward pass inside of the backward pass instead: then arguments in containers
    and keywords get no gradient, `autograd.grad` does not work, and one tensor among `args` must require grad.
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
        raise ValueError(f"checkpoint(use_reentrant=True): takes no keywords, got {', '.join(kwargs)}")
    if context_fn is not noop_context_fn:
        raise ValueError("checkpoint(context_fn): only with use_reentrant=False")
    return _Reentrant.apply(function, preserve_rng_state, *args)


_early_stop: bool | None = None  # None: as each call says


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Inside, `checkpoint` takes this for its `early_stop`."""
    global _early_stop
    former, _early_stop = _early_stop, bool(enable)
    try:
        yield
    finally:
        _early_stop = former


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Accepted for compatibility: errors say which tensor differs in any case."""
    yield


class DefaultDeviceType:
    """Which devices' random numbers `checkpoint` repeats where no tensor says: those of all, which are one stream."""

    _type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Remember the type for `get_device_type`."""
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        """What was set, "cuda" at first."""
        return DefaultDeviceType._type


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The devices other than the CPU that tensors among the arguments are on, and the states of their random numbers; there
    is one stream for all."""
    devices = sorted(
        {x.get_device() for x in args if isinstance(x, Tensor) and x.device.type not in ("cpu", "meta")}
    )
    return devices, [core.get_rng_state() for _ in devices]


def set_device_states(
    devices: Sequence[Any], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Continues the random numbers of devices from states; there is one stream for all, which takes the last of them."""
    if (device_type or DefaultDeviceType.get_device_type()) != "meta":
        for _, state in zip(devices, states, strict=False):
            core.set_rng_state(state)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Return the modules or functions one after the other, all but the last of `segments` equal parts checkpointed.

    `functions` is a Sequential or a sequence of callables; `kwargs` go to `checkpoint`.
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


# --- by hooks on what is saved ---


class _Place:
    """Stands for a saved tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self.kind = tuple(tensor.shape), tensor.dtype


class _Enough(BaseException):
    """Raised when everything that was asked for has been computed."""


_locks: dict[str, Any] = {}


@contextmanager
def _alone() -> Iterator[None]:
    """While something is computed again, with the random state of then, no other thread does so: branches of one backward
    pass may run at once. A pass inside stays on this thread, since others would wait for it."""
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
    # The nodes own the places: what is not needed any more is not kept when it is computed again.
    places: list[weakref.ref[_Place]] = []
    computed: weakref.WeakKeyDictionary[_Place, Tensor] = weakref.WeakKeyDictionary()

    def pack(tensor: Tensor) -> _Place:
        place = _Place(tensor)
        places.append(weakref.ref(place))
        return place

    def unpack(place: _Place) -> Tensor:
        if place not in computed:
            with _alone():
                if place not in computed:
                    compute_again()
        if place not in computed:
            raise CheckpointError(
                "checkpoint(): the function saved fewer tensors when it was computed again\n"
                "hint: it must do the same both times, whatever it reads besides its arguments"
            )
        return computed.pop(place)

    def compute_again() -> None:
        number = 0

        def keep(tensor: Tensor) -> None:
            nonlocal number
            if number == len(places):
                raise CheckpointError(
                    "checkpoint(): the function saved more tensors when it was computed again"
                )
            place = places[number]()
            number += 1
            if place is not None:
                kind = tuple(tensor.shape), tensor.dtype
                if check and kind != place.kind:
                    raise CheckpointError(
                        f"checkpoint(): tensor {number - 1} that the function saved was {place.kind[1]} of shape"
                        f" {place.kind[0]}, and {kind[1]} of shape {kind[0]} when it was computed again"
                    )
                computed[place] = tensor
            if early_stop and number == len(places):
                raise _Enough

        def refuse(_: None) -> Tensor:
            raise CheckpointError(
                "checkpoint(): a backward pass inside of the function needs use_reentrant=True"
            )

        now = core.get_rng_state() if state is not None else None
        try:
            if state is not None:
                core.set_rng_state(state)
            with again, core.enable_grad(), saved_tensors_hooks(keep, refuse):
                function(*args, **kwargs)
        except _Enough:
            pass
        finally:
            if now is not None:
                core.set_rng_state(now)

    with first_time, saved_tensors_hooks(pack, unpack):
        return function(*args, **kwargs)


# --- by a backward pass inside of the backward pass ---


class _Reentrant(Function):
    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        ctx.function = function
        ctx.state = core.get_rng_state() if preserve_rng_state else None
        ctx.args = [None if isinstance(x, Tensor) else x for x in args]
        ctx.save_for_backward(*(x for x in args if isinstance(x, Tensor)))
        with core.no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = iter(ctx.saved_tensors)
        wanted = ctx.needs_input_grad[2:]
        args = [x if x is not None else next(saved) for x in ctx.args]
        args = [
            x.detach().requires_grad_(want) if isinstance(x, Tensor) and want else x
            for x, want in zip(args, wanted, strict=True)
        ]
        with _alone():
            now = core.get_rng_state()
            try:
                if ctx.state is not None:
                    core.set_rng_state(ctx.state)
                with core.enable_grad():
                    outputs = ctx.function(*args)
            finally:
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
