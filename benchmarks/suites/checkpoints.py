"""checkpoints: CPU time and memory of loading files, memory of the first training step, and time of saving in shards.

Memory figures are peaks of the process, which the kernel counts; they are valid on a busy machine. Times must be measured on
a quiet machine, and do not include the imports of a library's first call, which the suite `import` measures. Files are
written to a temporary folder (TMPDIR) and removed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import process, stats
from ..environment import confined
from ..library import Library
from ..options import Options
from ..report import number, table

_WIDTH, _LAYERS = 2048, 12  # 12 matrices of 16 MiB
_BATCH = 4
_SHARDS, _WRITERS = 4, 4

_MODEL = """
nn = torch.nn
def build():
    layers = [each for _ in range({layers}) for each in (nn.Linear({width}, {width}), nn.ReLU())]
    return nn.Sequential(*layers)
"""
_STEP = """
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
model(torch.ones({batch}, {width})).sum().backward()
optimizer.step()
"""


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    measure: a function that runs in a fresh process, with `send`, the library's name and the folder of the files. unit: the
    unit of the values that it sends. target: the target for the value, or for the ratio to the peer if `to_peer` is set.
    peer: whether the peer is measured, too.
    """

    name: str
    measure: Callable[[process.Send, str, str], None]
    unit: str
    target: float
    to_peer: bool = False
    peer: bool = True


def _names(module: str) -> tuple[str, str]:
    """Return the names of the files that a library loads: a large state, and the state of the model."""
    return f"{module}-large.pt", f"{module}-model.pt"


def write_files(send: process.Send, module: str, folder: str, gigabytes: float) -> None:
    """Run in a fresh process with each library, and write the files for the measurements."""
    library = Library(module, 1)
    torch = library.module
    large, small = _names(module)
    rows = int(gigabytes * 1e9) // (4 * 1024 * 32)
    state = {f"{index}.weight": torch.ones(rows, 1024) for index in range(32)}
    torch.save(state, os.path.join(folder, large))
    del state
    scope = library.namespace(_MODEL.format(layers=_LAYERS, width=_WIDTH))
    torch.save(scope["build"]().state_dict(), os.path.join(folder, small))
    send(None)


def map_cpu_ms(send: process.Send, module: str, folder: str) -> None:
    """Measure the process's CPU milliseconds for `load(mmap=True)` of the large file, after loading another one."""
    torch = Library(module, 1).module
    path, other = (os.path.join(folder, name) for name in _names(module))
    torch.load(other, mmap=True)
    before = time.process_time_ns()
    state = torch.load(path, mmap=True)
    spent = time.process_time_ns() - before
    assert len(state) == 32
    send(spent / 1e6)


def _peak_over_weights(module: str, folder: str, load: Callable[[Any, Any, str], Any]) -> float:
    """Return the increase of the process's peak memory by `load`, relative to the bytes of the weights."""
    library = Library(module, 1)
    scope = library.namespace(_MODEL.format(layers=_LAYERS, width=_WIDTH))
    path = os.path.join(folder, _names(module)[1])
    with library.module.device("meta"):
        library.namespace("torch.nn.Linear(8, 8)")  # imports and allocations of the first layer
    before = reset_peak()
    model = load(library.module, scope["build"], path)
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    return (status("VmHWM") - before) / weights


def load_peak(send: process.Send, module: str, folder: str) -> None:
    """Measure the peak of loading a file into a model that has no memory yet."""
    send(_peak_over_weights(module, folder, lambda torch, build, path: _assigned(torch, build, path, False)))


def map_peak(send: process.Send, module: str, folder: str) -> None:
    """Measure the peak of loading with `mmap=True`, before anything is written."""
    send(_peak_over_weights(module, folder, lambda torch, build, path: _assigned(torch, build, path, True)))


def first_step_peak(send: process.Send, module: str, folder: str) -> None:
    """Measure the peak of mapping a file into a model and taking its first training step."""

    def train(torch: Any, build: Callable[[], Any], path: str) -> Any:
        model = _assigned(torch, build, path, True)
        exec(_STEP.format(batch=_BATCH, width=_WIDTH), {"torch": torch, "model": model})
        return model

    send(_peak_over_weights(module, folder, train))


def _assigned(torch: Any, build: Callable[[], Any], path: str, mmap: bool) -> Any:
    with torch.device("meta"):
        model = build()
    model.load_state_dict(torch.load(path, mmap=mmap), assign=True)
    return model


def shard_time(send: process.Send, module: str, folder: str) -> None:
    """Measure the time of `save` in shards relative to writing and flushing the same number of files with the same bytes."""
    torch = Library(module, os.cpu_count() or 1).module
    state = torch.load(os.path.join(folder, _names(module)[0]), mmap=True)
    state = {name: value.clone() for name, value in state.items()}
    size = sum(value.numel() * value.element_size() for value in state.values())
    limit = -(-size // _SHARDS)
    ratios = []
    for _ in range(4):  # the first one includes imports, and does not count
        target = tempfile.mkdtemp(dir=folder)
        before = time.perf_counter()
        torch.save(state, os.path.join(target, "state.safetensors"), max_shard_size=limit)
        ours = time.perf_counter() - before
        shutil.rmtree(target)
        target = tempfile.mkdtemp(dir=folder)
        before = time.perf_counter()
        _write_plainly(list(state.values()), target)
        ratios.append(ours / (time.perf_counter() - before))
        shutil.rmtree(target)
    send(float(np.median(ratios[1:])))


def _write_plainly(tensors: Sequence[Any], folder: str) -> None:
    """Write the tensors' bytes to files of equal size, with as many threads as `save` uses, and flush them to disk."""

    def write(number: int) -> None:
        with open(os.path.join(folder, str(number)), "wb", buffering=0) as file:
            for tensor in tensors[number::_SHARDS]:
                left = memoryview(tensor.numpy()).cast("B")
                while left:
                    left = left[file.write(left) :]
            os.fsync(file.fileno())

    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(write, range(_SHARDS)))


FIGURES = (
    Figure("map a large file", map_cpu_ms, "ms CPU", 50),
    Figure("load a file into a model, peak by the weights", load_peak, "", 1.1),
    Figure("map a file into a model, peak by the weights", map_peak, "", 0.1),
    Figure("first step after mapping, peak by the weights", first_step_peak, "", 1.0, to_peer=True),
    Figure("save in shards by writing the bytes", shard_time, "", 1.2, peer=False),
)


def reset_peak() -> int:
    """Let the kernel reset the peak of this process, and return its present bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def status(field: str) -> int:
    """Return a field of this process's status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def run(options: Options) -> dict[str, Any]:
    """Measure each figure in fresh processes, in turn with the peer."""
    chosen = [figure for figure in FIGURES if options.match in figure.name]
    if not chosen:
        raise ValueError(f"no figure's name contains {options.match!r}")
    gigabytes = 0.1 if options.quick else 1.0
    repeats = 2 if options.quick else 5
    modules = {"subject": options.module, "peer": options.peer}
    rows = []
    with confined(options.threads[0], options.cpu_list()), tempfile.TemporaryDirectory() as folder:
        for module in modules.values():
            process.fresh(write_files, module, folder, gigabytes)
        for figure in chosen:
            found: dict[str, list[float]] = {key: [] for key in modules if figure.peer or key == "subject"}
            for _ in range(repeats):
                for key, values in found.items():
                    values.append(process.fresh(figure.measure, modules[key], folder))
            rows.append(summarize(figure, found))
    return {"suite": "checkpoints", "gigabytes": gigabytes, **modules, "rows": rows}


def summarize(figure: Figure, found: dict[str, list[float]]) -> dict[str, Any]:
    """Return the medians, the ratio to the peer, and whether the target is met."""
    row: dict[str, Any] = {"name": figure.name, "unit": figure.unit, "target": figure.target}
    row |= {key: stats.summarize(values).as_dict() for key, values in found.items()}
    if "peer" in found:
        row["ratio"] = stats.median_ratio(stats.ratios(found["subject"], found["peer"])).as_dict()
    judged = row["ratio"]["value"] if figure.to_peer else row["subject"]["median"]
    row["verdict"] = "met" if judged <= figure.target else "not met"
    row["judged"] = "ratio" if figure.to_peer else "value"
    return row


def render(result: dict[str, Any]) -> str:
    """Return a table with one row per figure."""
    body = []
    for row in result["rows"]:
        peer = f"{row['peer']['median']:.3g} {row['unit']}".strip() if "peer" in row else ""
        body.append(
            [
                row["name"],
                f"{row['subject']['median']:.3g} {row['unit']}".strip(),
                peer,
                number(row["ratio"]["value"]) if "ratio" in row else "",
                f"{row['judged']} {row['target']:g}",
                row["verdict"],
            ]
        )
    header = ["figure", result["subject"], result["peer"], "ratio", "target", "verdict"]
    return f"checkpoints: a large file of {result['gigabytes']:g} GB\n\n{table(header, body)}"
