"""The parts of the library, and the switches that turn them off."""

from __future__ import annotations

from dataclasses import dataclass

from ..table1.catalogue import ENTRIES
from ..table1.modes import Group, Mode


@dataclass(frozen=True)
class Part:
    """title: the name of a part. off: its replacement. switch: that of `table1.peers.pytorch` or `table1.training`."""

    title: str
    off: str
    switch: str


PARTS = (
    Part("caching allocator", "blocks come from the C library: `RUSHLIGHT_CPU_ALLOCATOR=malloc`", "uncached"),
    Part("minimal filtering", "direct 3x3 convolutions: `backends.cpu.winograd = False`", "direct"),
    Part("oneDNN", "only rushlight's own kernels: `backends.mkldnn.enabled = False`", "plain"),
    Part("fused optimizers", "an optimizer that calls an operator for each arithmetic step", "operators"),
    Part("engine in C++", "a tape in Python, which holds the GIL: `RUSHLIGHT_AUTOGRAD=tape`", "tape"),
)

# Parts that no public setting switches off, with the reasons.
UNMEASURED = {
    "bindings by METH_FASTCALL": "there is no slower path, because operators are bound in only one way",
    "reference counting": "there is no collector: a tensor's memory is freed with its last reference",
}

# Parts of loading data, which `loader` measures, and the arguments of DataLoader that switch each part off.
LOADING: dict[str, dict[str, object]] = {
    "all parts": {"num_workers": 2, "transport": "shared_memory"},
    "shared memory": {"num_workers": 2, "transport": "pickling"},
    "worker processes": {"num_workers": 2, "transport": "threads"},
    "workers": {"num_workers": 0},
}
LOADING_OFF = {
    "shared memory": 'batches are pickled: `transport="pickling"`',
    "worker processes": 'threads read: `transport="threads"`',
    "workers": "the training process reads: `num_workers=0`",
}


def group(model: str) -> Group:
    """Return the modes of the whole library, and of the library without each part that the model uses."""
    chosen = [part for part in PARTS if _has(model, part)]
    return Group("ablations", (Mode("rushlight"), *(Mode("rushlight", part.switch) for part in chosen)))


def _has(model: str, part: Part) -> bool:
    """Return whether a model uses a part. Without convolutions it uses neither minimal filtering nor oneDNN."""
    return part.switch not in ("direct", "plain") or ENTRIES[model].images
