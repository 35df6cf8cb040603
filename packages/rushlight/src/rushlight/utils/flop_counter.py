"""How many floating-point operations a part of a program takes, by module and operator."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Self

from rushlight.profiler import profile, record_function
from rushlight_nn.hooks import register_module_forward_hook, register_module_forward_pre_hook

__all__ = ["FlopCounterMode"]

# What is counted: products of matrices, convolutions, attention, and their gradients.
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
_MARK = "flop_counter: "


class FlopCounterMode:
    """A block whose products, convolutions and attention, and those of their gradients, are counted.

    A multiplication and an addition count as two operations. The block is recorded with `rushlight.profiler.profile`, so
    that no other profile may record meanwhile. Of a convolution's backward pass the weight's gradient is always counted.

    Args:
        mods: accepted, as by PyTorch, which has no use for it any more.
        depth: how many levels of modules the table shows; None for all.
        display: whether the table is printed at the end of the block.
        custom_mapping: must be None. Formulas of PyTorch's are for operators of its lower layer.

    Example::

        with FlopCounterMode(display=False) as counter:
            model(x).sum().backward()
        counter.get_total_flops()
    """

    def __init__(
        self, mods: Any = None, depth: int | None = 2, display: bool = True, custom_mapping: Any = None
    ) -> None:
        if custom_mapping:
            raise NotImplementedError("FlopCounterMode(custom_mapping): formulas cannot be given")
        self.depth = depth
        self.display = display
        self._counts: dict[str, dict[str, int]] = {"Global": {}}
        self._open: list[tuple[Any, str, Any]] = []  # the modules that are running: their names and spans
        self._names: dict[int, str] = {}

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """For "Global" and for every module that ran, by its path, the operations of each operator, by its name."""
        return {path: dict(counts) for path, counts in self._counts.items()}

    def get_total_flops(self) -> int:
        """All of them together."""
        return sum(self._counts["Global"].values())

    def get_table(self, depth: int | None = None) -> str:
        """Return the counts as text, with a row for each module and its operators.

        Modules are listed down to `depth`, by default that of the counter.
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
        self._counts = {"Global": {}}
        self._names.clear()
        self._profile = profile(with_flops=True)
        self._profile.start()
        self._handles = [
            register_module_forward_pre_hook(self._begin),
            register_module_forward_hook(self._end, always_call=True),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()
        while self._open:
            self._open.pop()[2].__exit__(None, None, None)
        self._profile.stop()
        self._count()
        if self.display:
            print(self.get_table())

    def _begin(self, module: Any, arguments: Any) -> None:
        name = self._names.get(id(module), type(module).__name__)
        for child, inner in module.named_children():
            self._names[id(inner)] = f"{name}.{child}"
        span = record_function(_MARK + name)
        span.__enter__()
        self._open.append((module, name, span))

    def _end(self, module: Any, arguments: Any, result: Any) -> None:
        while self._open:  # the forward hook of a module that raised may not have run
            last, _, span = self._open.pop()
            span.__exit__(None, None, None)
            if last is module:
                break

    def _count(self) -> None:
        counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        recorded = {}
        for event in self._profile.events():
            if event.kind == "operator" and event.sequence_nr > 0:
                recorded[event.sequence_nr] = event
            if event.kind == "annotation" and event.name.startswith(_MARK):
                counts[event.name.removeprefix(_MARK)]  # also where it counts nothing
            if event.name not in _COUNTED or not event.flops:
                continue
            for path in ["Global", *_modules_around(event, recorded)]:
                counts[path][event.name] += event.flops
        everywhere = counts.pop("Global", {})
        self._counts = {"Global": dict(everywhere), **{path: dict(of) for path, of in counts.items()}}


def _modules_around(event: Any, recorded: dict[int, Any]) -> list[str]:
    """The modules that an operator ran in; of a backward pass those that its operator ran in."""
    found = []
    while event is not None:
        if event.kind == "annotation" and event.name.startswith(_MARK):
            found.append(event.name.removeprefix(_MARK))
        if event.kind == "node" and event.sequence_nr in recorded:
            event = recorded[event.sequence_nr]
        event = event.cpu_parent
    return list(dict.fromkeys(reversed(found)))
