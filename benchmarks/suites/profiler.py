"""profiler: does the profiler package, imported but off, cost anything? Two processes, blocks interleaved.

Two processes never run at exactly the same speed (address layout, hash seeds), so pairs of fresh processes
are compared. Beside the pairs in question stand control pairs in which neither imported it: their scatter
is what "nothing measurable" means.
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

import numpy as np

from .. import stats
from ..environment import confined
from ..harness import Loop, Plan, Subject, empty_loop, interleave
from ..library import Library
from ..options import Options
from ..report import table
from ..rows import Row, overhead
from .micro import CLOCKS


class Worker:
    """A fresh process that times rows on request."""

    def __init__(self, module: str, profiler: str | None, clock: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other, module, profiler, clock), daemon=True)
        self._process.start()
        other.close()
        self._answer()

    def prepare(self, row: Row) -> None:
        self._connection.send(("prepare", row))
        self._answer()

    def run(self, kind: str, count: int) -> int:
        self._connection.send((kind, count))
        return int(self._answer())

    def loaded(self, module: str) -> bool:
        """Whether the process has imported a module."""
        self._connection.send(("loaded", module))
        return bool(self._answer())

    def _answer(self) -> Any:
        try:
            kind, value = self._connection.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError(f"the process ended with exit code {self._process.exitcode}") from None
        if kind == "error":
            raise RuntimeError(value)
        return value

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def serve(connection: Connection, module: str, profiler: str | None, clock: str) -> None:
    """The process's side: answers until the connection closes."""
    subject: Loop | None = None
    gc.disable()  # as `interleave` does for subjects in its own process
    try:
        library = Library(module, 1)
        if profiler is not None:
            importlib.import_module(profiler)
        connection.send(("ready", None))
        while True:
            command, argument = connection.recv()
            try:
                if command == "prepare":
                    subject = library.subject(argument, argument.setup, CLOCKS[clock])
                    connection.send(("ready", None))
                elif command == "loop":
                    connection.send(("ns", empty_loop(CLOCKS[clock]).run(argument)))
                elif command == "loaded":
                    connection.send(("loaded", argument in sys.modules))
                else:
                    assert subject is not None, "a row is prepared before it runs"
                    connection.send(("ns", subject.run(argument)))
            except Exception as error:
                connection.send(("error", f"{type(error).__name__}: {error}"))
    except EOFError:
        pass  # the parent is done
    except Exception as error:
        connection.send(("error", f"{type(error).__name__}: {error}"))


class Remote:
    """A `Subject` in another process."""

    def __init__(self, worker: Worker, kind: str) -> None:
        self.name = kind
        self._worker = worker
        self._kind = kind

    def run(self, count: int) -> int:
        return self._worker.run(self._kind, count)


def run(options: Options) -> dict[str, Any]:
    """Ratios imported / not imported per row and their geometric mean, beside those of the control pairs."""
    pairs = 2 if options.quick else 6
    rows = [row for row in overhead.ROWS if options.match in row.name]
    clock = options.clock_for(1)
    plan = Plan(rounds=10 if options.quick else 40, block_s=1e-3, seconds=2.0)
    logs: dict[str, list[list[float]]] = {"imported": [], "control": []}
    try:
        with confined(1, options.cpu_list()):
            for _ in range(pairs):
                for key, profiler in (("imported", options.profiler), ("control", None)):
                    with (
                        Worker(options.module, None, clock) as absent,
                        Worker(options.module, profiler, clock) as other,
                    ):
                        logs[key].append([float(np.log(_ratio(row, other, absent, plan))) for row in rows])
                        if absent.loaded(options.profiler):
                            raise RuntimeError(
                                f"{options.module} loads {options.profiler} by itself: nothing to compare"
                            )
                print(f"  {key} pair {len(logs[key])} of {pairs}", file=sys.stderr, flush=True)
    except RuntimeError as error:
        return {"suite": "profiler", "problem": str(error)}
    return summarize(options, rows, logs)


def _ratio(row: Row, other: Worker, absent: Worker, plan: Plan) -> float:
    """Median over rounds of time with / time without, for one pair of processes."""
    for worker in (other, absent):
        worker.prepare(row)
    subjects: list[Subject] = [Remote(other, "run"), Remote(absent, "run"), Remote(absent, "loop")]
    with_, without, loop = interleave(subjects, plan)
    cost = float(np.median(loop.per_call()))
    return stats.median_ratio(stats.ratios(with_.per_call(cost), without.per_call(cost))).value


def summarize(options: Options, rows: Sequence[Row], logs: dict[str, list[list[float]]]) -> dict[str, Any]:
    """Pairs are what is resampled: the rows of one pair share its two processes and are not independent."""
    result: dict[str, Any] = {
        "suite": "profiler",
        "module": options.module,
        "profiler": options.profiler,
        "pairs": len(logs["imported"]),
        "rows": [],
    }
    means = {}
    for key, values in logs.items():
        table_ = np.array(values)
        means[key] = stats.median_ratio(np.exp(table_.mean(axis=1)))
        result[key] = means[key].as_dict()
        for index, row in enumerate(rows):
            if key == "imported":
                result["rows"].append({"name": row.name})
            result["rows"][index][key] = stats.median_ratio(np.exp(table_[:, index])).as_dict()
    apart = means["imported"].low > max(means["control"].high, 1.0)
    result["verdict"] = "not met: measurably slower" if apart else "met: nothing measurable"
    return result


def render(result: dict[str, Any]) -> str:
    """Ratios per row: with the profiler's package imported, and of the control."""
    if "problem" in result:
        return f"profiler: {result['problem']}"
    columns = ("imported", "control")
    body = [
        [entry["name"], *(cell for key in columns for cell in _cells(entry[key]))] for entry in result["rows"]
    ]
    body.append(["geometric mean", *(cell for key in columns for cell in _cells(result[key]))])
    header = ["row", "imported / not", "95 % interval", "control", "95 % interval"]
    return (
        f"profiler: {result['profiler']} imported but off; {result['pairs']} pairs of processes\n\n"
        f"{table(header, body)}\n\n{result['verdict']}"
    )


def _cells(estimate: dict[str, float]) -> tuple[str, str]:
    return f"{estimate['value']:.3f}", f"{estimate['low']:.3f}-{estimate['high']:.3f}"
