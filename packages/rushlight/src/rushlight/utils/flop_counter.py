"""Count the floating-point operations of a part of a program, by module and operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import count
from threading import Lock
from typing import Any, Self, TypeVar

import rushlight_autograd.library as _library
from rushlight.profiler import EventList, Interval, profile, record_function
from rushlight.utils._pytree import tree_map
from rushlight_autograd.library import CustomOpDef
from rushlight_core import Tensor
from rushlight_nn.hooks import register_module_forward_hook, register_module_forward_pre_hook
from rushlight_profiler.session import events_so_far, recorded_data

__all__ = ["FlopCounterMode", "register_flop_formula"]

_Formula = TypeVar("_Formula", bound=Callable[..., int])

# The operators that are counted: products of matrices, convolutions, attention, and their gradients.
_COUNTED = {
    "_attention",
    "_attention_backward",
    "addmm",
    "baddbmm",
    "bmm",
    "convolution",
    "convolution_backward",
    "linear",
    "mm",
}
_SPAN = "flop_counter"  # prefix of the names of a counter's spans

# Note [Counters in one profile]
# A process records one profile at a time. The first counter starts it, unless the program's own profile records already,
# and further counters use the same profile. Each counter records spans around its block, the modules, and the calls of
# operators with a formula. The names of the spans contain the number of the counter. At the end of its block, the counter
# reads the events recorded so far. Spans must be nested, so the hooks of modules are registered once for all counters.

_formulas: dict[CustomOpDef, Callable[..., int]] = {}
_lock = Lock()
_counters: list[FlopCounterMode] = []  # the counters whose blocks are running, the outermost first
_numbers = count(1)


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[_Formula], _Formula]:
    """Decorator that registers a formula by which FlopCounterMode counts operations of custom operators.

    The formula takes the operator's arguments, with shapes instead of tensors. Its argument `out_shape` is the shape of the
    result, or a container of shapes if there are several results. The formula returns the number of
    operations. Operators that the custom operator calls internally are not counted separately.

    Args:
        targets: a custom operator, such as `torch.ops.namespace.name`, or a list of them.
        get_raw: if True, the formula takes tensors instead of shapes, and the result as `out_val` instead of `out_shape`.

    Raises:
        ValueError: a target is not a custom operator.
        RuntimeError: a target has a formula already.

    Example::

        @register_flop_formula(torch.ops.mine.product)
        def product_flops(a_shape, b_shape, out_shape=None, **kwargs):
            return 2 * a_shape[0] * a_shape[1] * b_shape[1]
    """

    def register(formula: _Formula) -> _Formula:
        listed = list(targets) if isinstance(targets, (list, tuple, set)) else [targets]
        for target in listed:
            _require_custom("register_flop_formula(targets)", target)
            if target in _formulas:
                raise RuntimeError(f"register_flop_formula(targets): duplicate registrations for {target}")
        _formulas.update(dict.fromkeys(listed, formula if get_raw else _of_shapes(formula)))
        return formula

    return register


def _require_custom(argument: str, target: Any) -> None:
    if not isinstance(target, CustomOpDef):
        raise ValueError(
            f"{argument}: must be a custom operator, such as torch.ops.namespace.name, got {target!r}\n"
            "hint: operators of the library have formulas already"
        )


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    """Return a formula that takes tensors and passes their shapes to `formula`."""

    def shape_of(x: Any) -> Any:
        return x.shape if isinstance(x, Tensor) else x

    def of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = tree_map(shape_of, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return of_tensors


class FlopCounterMode:
    """Context manager that counts the operations of matrix products, convolutions, attention and their gradients.

    A multiplication and an addition count as two operations. The block is recorded with `rushlight.profiler.profile`.
    Counters may be nested. A counter may be used while a profile that records shapes is active, but no
    profile may begin or end while a counter is active. For the backward pass of a convolution, the gradient
    of the weight is counted even if it is not computed. Operations in the gradients of custom operators and
    of Functions are counted only in "Global", not for the module that called the operator or Function.

    Args:
        mods: has no effect, as in PyTorch.
        depth: how many levels of modules the table shows; None for all.
        display: whether the table is printed at the end of the block.
        custom_mapping: a dict from custom operators to their formulas, which have the same form as for
            `register_flop_formula` and replace registered formulas. A formula whose attribute `_get_raw` is true takes
            tensors instead of their shapes.

    Raises:
        ValueError: a key of `custom_mapping` is not a custom operator.
        RuntimeError: the profile that is recording does not record shapes, or it ended inside the block (both raised by
            `with`).

    Example::

        with FlopCounterMode(display=False) as counter:
            model(x).sum().backward()
        counter.get_total_flops()
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: Mapping[Any, Callable[..., int]] | None = None,
    ) -> None:
        self._formulas: dict[CustomOpDef, Callable[..., int]] = {}
        for operator, formula in (custom_mapping or {}).items():
            _require_custom("FlopCounterMode(custom_mapping)", operator)
            self._formulas[operator] = formula if getattr(formula, "_get_raw", False) else _of_shapes(formula)
        self._calls: list[tuple[str, int]] = []  # names and numbers of operations of calls with a formula
        self.depth = depth
        self.display = display
        self._counts: dict[str, dict[str, int]] = {"Global": {}}
        self._open: list[tuple[Any, str, Any]] = []  # the running modules, with their names and spans
        self._names: dict[int, str] = {}

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Return, for "Global" and for each module that ran, a dict with the number of operations of each operator."""
        return {path: dict(counts) for path, counts in self._counts.items()}

    def get_total_flops(self) -> int:
        """Return the total number of operations."""
        return sum(self._counts["Global"].values())

    def get_table(self, depth: int | None = None) -> str:
        """Return the counts as text, with a row for each module and its operators.

        Modules are listed down to the level `depth`, by default the depth of the counter.
        """
        depth = self.depth if depth is None else depth
        total = max(self.get_total_flops(), 1)
        rows = [("Module", "FLOP", "% Total")]
        for path, counts in self._counts.items():
            level = 0 if path == "Global" else path.count(".") + 1
            if depth is not None and level > depth:
                continue
            indent = "  " * level
            lines = [(indent + path, sum(counts.values()))]
            lines += [(f"{indent} - {name}", flops) for name, flops in counts.items()]
            rows += [(name, str(flops), f"{100 * flops / total:.2f}%") for name, flops in lines]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return "\n".join(
            f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}" for row in rows
        )

    def __enter__(self) -> Self:
        if self in _counters:
            raise RuntimeError(
                "FlopCounterMode: the counter is running already\nhint: create another counter"
            )
        if not _counters:
            _shared.start()
        self._counts = {"Global": {}}
        self._names.clear()
        self._calls.clear()
        self._prefix = f"{_SPAN} {next(_numbers)}"
        self._block = record_function(self._prefix)
        self._block.__enter__()
        _counters.append(self)
        return self

    def __exit__(self, kind: object = None, *error: object) -> None:
        while self._open:
            self._open.pop()[2].__exit__(None, None, None)
        self._block.__exit__(None, None, None)
        _counters.remove(self)
        events = events_so_far() if _counters else _shared.stop()
        block = next((event for event in events if event.name == self._prefix), None)
        if block is not None:
            self._count(events, block.time_range)
            if self.display:
                print(self.get_table())
        elif kind is None:
            raise RuntimeError(
                "FlopCounterMode: the profile around the block ended inside the block\n"
                "hint: end the block before the profile's step() or stop()"
            )

    def _begin(self, module: Any) -> None:
        name = self._names.get(id(module), type(module).__name__)
        for child, inner in module.named_children():
            self._names[id(inner)] = f"{name}.{child}"
        span = record_function(f"{self._prefix} module: {name}")
        span.__enter__()
        self._open.append((module, name, span))

    def _end(self, module: Any) -> None:
        while self._open:  # the forward hook of a module that raised may not have run
            last, _, span = self._open.pop()
            span.__exit__(None, None, None)
            if last is module:
                break

    def _counted(self, operator: CustomOpDef, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls `kernel`, and counts the operations of each call.

        Each call is recorded in the profile as a span whose name ends in the number of the call. If the
        operator has no formula, return `kernel` itself.
        """
        formula = self._formulas.get(operator) or _formulas.get(operator)
        if formula is None:
            return kernel

        def counted(*args: Any, **kwargs: Any) -> Any:
            with _lock:  # backward passes run in threads of the autograd engine
                number = len(self._calls)
                self._calls.append((operator._name, 0))
            with record_function(f"{self._prefix} call: {number}"):
                result = kernel(*args, **kwargs)
            self._calls[number] = operator._name, formula(*args, **kwargs, out_val=result)
            return result

        return counted

    def _count(self, events: EventList, block: Interval) -> None:
        mark, call = f"{self._prefix} module: ", f"{self._prefix} call: "
        counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        recorded = {}
        for event in events:
            if not block.start <= event.time_range.start <= block.end:
                continue
            if event.kind == "operator" and event.sequence_nr > 0:
                recorded[event.sequence_nr] = event
            if event.kind == "annotation" and event.name.startswith(mark):
                counts[event.name.removeprefix(mark)]  # adds an entry even if no operations are counted
            name, flops = event.name, event.flops
            if event.kind == "annotation" and name.startswith(call):
                name, flops = self._calls[int(name.removeprefix(call))]
            elif name not in _COUNTED or not flops or _is_in_call(event, call):
                continue
            for path in ["Global", *_modules_around(event, recorded, mark)]:
                counts[path][name] += flops
        everywhere = counts.pop("Global", {})
        self._counts = {"Global": dict(everywhere), **{path: dict(of) for path, of in counts.items()}}


class _Shared:
    """The profile and the hooks that all counters use; see Note [Counters in one profile]."""

    def start(self) -> None:
        data = recorded_data()
        if data is not None and not data["shapes"]:
            raise RuntimeError(
                "FlopCounterMode: the profile that is recording must record shapes\n"
                "hint: pass record_shapes=True or with_flops=True to the profile"
            )
        self._profile = profile(with_flops=True) if data is None else None
        if self._profile is not None:
            self._profile.start()
        self._handles = [
            register_module_forward_pre_hook(self._begin),
            register_module_forward_hook(self._end, always_call=True),
        ]
        _library._around = self._call

    def stop(self) -> EventList:
        _library._around = None
        for handle in self._handles:
            handle.remove()
        if self._profile is None:
            return events_so_far()
        self._profile.stop()
        return self._profile.events()

    def _begin(self, module: Any, arguments: Any) -> None:
        for counter in _counters:
            counter._begin(module)

    def _end(self, module: Any, arguments: Any, result: Any) -> None:
        for counter in reversed(_counters):
            counter._end(module)

    def _call(
        self, operator: CustomOpDef, kernel: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
    ) -> Any:
        for counter in reversed(_counters):
            kernel = counter._counted(operator, kernel)
        return kernel(*args, **kwargs)


_shared = _Shared()


def _is_in_call(event: Any, call: str) -> bool:
    """Return whether an event is, or lies inside, a span whose name begins with `call`."""
    while event is not None and not event.name.startswith(call):
        event = event.cpu_parent
    return event is not None


def _modules_around(event: Any, recorded: dict[int, Any], mark: str) -> list[str]:
    """Return the modules that an operator ran in; for a backward node, the modules of its forward operator."""
    found = []
    while event is not None:
        if event.kind == "annotation" and event.name.startswith(mark):
            found.append(event.name.removeprefix(mark))
        if event.kind == "node" and event.sequence_nr in recorded:
            event = recorded[event.sequence_nr]
        event = event.cpu_parent
    return list(dict.fromkeys(reversed(found)))
