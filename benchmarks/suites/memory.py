"""memory: the peak resident memory of training a small convolutional network, in fresh processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .. import process, stats
from ..environment import confined
from ..library import Library
from ..options import Options
from ..report import number, table

_SETUP = """
nn, F = torch.nn, torch.nn.functional
model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
                      nn.MaxPool2d(2), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                      nn.Flatten(), nn.Linear(64 * 8 * 8, 10))
fill(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
x = torch.tensor(data(64, 3, 32, 32))
target = torch.arange(64) % 10
def step():
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), target)
    loss.backward()
    optimizer.step()
    return loss.item()
"""
_STEPS = 10


def run(options: Options) -> dict[str, Any]:
    """Megabytes after the import, at the peak of the training, and the difference. Processes alternate."""
    repeats = 2 if options.quick else 5
    threads = options.threads[0]
    found: dict[str, list[dict[str, float]]] = {"subject": [], "peer": []}
    with confined(threads, options.cpu_list()):
        for _ in range(repeats):
            for key, module in (("subject", options.module), ("peer", options.peer)):
                found[key].append(process.fresh(measure, module, threads))
    losses = [
        abs(ours["loss"] - theirs["loss"])
        for ours, theirs in zip(found["subject"], found["peer"], strict=True)
    ]
    result: dict[str, Any] = {
        "suite": "memory",
        "module": options.module,
        "peer": options.peer,
        "threads": threads,
    }
    if max(losses) > 1e-3:
        return result | {"problem": f"the losses after {_STEPS} steps differ by {max(losses):.3g}"}
    for quantity in ("imported_mb", "peak_mb", "step_mb"):
        ours, theirs = ([entry[quantity] for entry in found[key]] for key in ("subject", "peer"))
        result[quantity] = {
            "subject": stats.summarize(ours).as_dict(),
            "peer": stats.summarize(theirs).as_dict(),
            "ratio": stats.median_ratio(stats.ratios(ours, theirs)).as_dict(),
        }
    return result


def measure(send: process.Send, module: str, threads: int) -> None:
    """Runs in the fresh process. The peak is the kernel's own high-water mark of this process image.

    getrusage's maximum would not do: it carries over the size of the parent that was forked.
    """
    library = Library(module, threads)
    imported = _status("VmRSS")
    scope = library.namespace(_SETUP)
    loss = 0.0
    for _ in range(_STEPS):
        loss = scope["step"]()
    peak = _status("VmHWM")
    send({"imported_mb": imported, "peak_mb": peak, "step_mb": peak - imported, "loss": loss})


def _status(field: str) -> float:
    """A field of this process's status, in megabytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024 / 1e6
    raise RuntimeError(f"/proc/self/status has no {field}")


def render(result: dict[str, Any]) -> str:
    """One row per quantity."""
    if "problem" in result:
        return f"memory: {result['problem']}"
    labels = {
        "imported_mb": "after the import",
        "step_mb": "added by model and training steps",
        "peak_mb": "peak of the process",
    }
    body = [
        [
            label,
            f"{result[key]['subject']['median']:.1f} MB",
            f"{result[key]['peer']['median']:.1f} MB",
            number(result[key]["ratio"]["value"]),
        ]
        for key, label in labels.items()
    ]
    header = ["", result["module"], result["peer"], "ratio"]
    return f"memory: {result['threads']} thread(s)\n\n{table(header, body)}"
