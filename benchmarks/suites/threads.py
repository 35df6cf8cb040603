"""threads: models in threads of one process, beside each other and beside a thread that executes Python."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from .. import process, stats
from ..environment import confined
from ..library import Library
from ..options import Options
from ..report import number, table

_ROUNDS = 5
_BATCHES = 40
_PRODUCTS = 10

_SETUP = """
nn = torch.nn
model = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
    nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
).eval()
images, matrix = torch.tensor(data(8, 3, 64, 64)), torch.tensor(data(1200, 1200))
def batches(count):
    with torch.no_grad():
        for _ in range(count):
            model(images)
def products(count):
    for _ in range(count):
        matrix @ matrix
"""

# The measured quantities, their units, and their formats.
_FIGURES = {
    "alone": "batches per second of one thread",
    "two": "batches per second of two threads, relative to one thread",
    "busy": "batches per second beside a thread that counts, relative to alone",
    "pause": "longest pause of a thread beside products of matrices, ms",
}


def run(options: Options) -> dict[str, Any]:
    """Return the figures of both libraries, each the median over fresh processes in turn."""
    found: dict[str, list[dict[str, float]]] = {options.module: [], options.peer: []}
    with confined(2, options.cpu_list()):
        for _ in range(1 if options.quick else _ROUNDS):
            for name, measured in found.items():
                measured.append(process.fresh(measure, name))
    rows = [
        {"name": name, "text": text}
        | {
            side: stats.summarize([entry[name] for entry in found[library]]).as_dict()
            for side, library in (("module", options.module), ("peer", options.peer))
        }
        for name, text in _FIGURES.items()
    ]
    return {"suite": "threads", "module": options.module, "peer": options.peer, "rows": rows}


def measure(send: process.Send, name: str) -> None:
    """Run in the fresh process, where each operator computes on one thread."""
    scope = Library(name, 1).namespace(_SETUP)
    batches, products = scope["batches"], scope["products"]
    batches(10)
    alone = _rate(1, batches)
    two = _rate(2, batches)
    with _Beside(_count):
        busy = _rate(1, batches)
    pauses = [0.0]
    with _Beside(lambda: pauses.append(_pause())):
        products(_PRODUCTS)
    send({"alone": alone, "two": two / alone, "busy": busy / alone, "pause": 1e3 * max(pauses)})


def _rate(count: int, batches: Callable[[int], None]) -> float:
    """Return the batches per second of several threads together."""
    threads = [threading.Thread(target=batches, args=(_BATCHES,)) for _ in range(count)]
    before = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count * _BATCHES / (time.perf_counter() - before)


def _count() -> None:
    for _ in range(1000):
        pass


def _pause() -> float:
    before = time.perf_counter()
    time.sleep(0.0005)
    return time.perf_counter() - before


class _Beside:
    """A scope in which another thread calls a function again and again."""

    def __init__(self, function: Callable[[], None]) -> None:
        self.function = function
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.repeat)

    def repeat(self) -> None:
        while not self.over.is_set():
            self.function()

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


def render(result: dict[str, Any]) -> str:
    """Return a table with one row per figure."""
    body = [
        [row["text"], number(row["module"]["median"]), number(row["peer"]["median"])]
        for row in result["rows"]
    ]
    return f"threads\n\n{table(['figure', result['module'], result['peer']], body)}"
