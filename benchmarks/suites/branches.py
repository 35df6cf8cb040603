"""branches: a backward pass through two independent branches, with parallel_branches() and without, on two threads."""

from __future__ import annotations

import time
from typing import Any

from .. import process, stats
from ..environment import confined
from ..library import Library
from ..options import Options
from ..report import number, table

TARGET = 1.6  # times as fast
_ROUNDS = 15

# Operators that use one thread each. Kernels that use several processors gain nothing from branches.
_BRANCHES = {
    "3000 times tanh of 16 Ki": ("torch.tensor(data(1 << 14))", "a.tanh()", 3000),
    "300 times lgamma of 16 Ki": ("torch.tensor(data(1 << 14))", "a.lgamma() * 0.1 + 2", 300),
}

_SETUP = """
def branch(a):
    for _ in range({depth}):
        a = {step}
    return a
left, right = ({start}).requires_grad_(), ({start}).requires_grad_()
def graph():
    left.grad = right.grad = None
    return (branch(left) + branch(right)).sum()
"""


def run(options: Options) -> dict[str, Any]:
    """Return the seconds of the pass, the best of several alternating rounds, and whether the gradients agree bit by bit."""
    names = [name for name in _BRANCHES if options.match in name]
    rows = []
    with confined(2, options.cpu_list()):
        for name in names:
            found = [process.fresh(measure, options.module, name) for _ in range(1 if options.quick else 3)]
            gains = [entry["alone_s"] / entry["together_s"] for entry in found]
            rows.append(
                {
                    "name": name,
                    "gain": stats.summarize(gains).as_dict(),
                    "same": all(e["same"] for e in found),
                }
                | {key: min(entry[key] for entry in found) for key in ("alone_s", "together_s")}
            )
    return {"suite": "branches", "module": options.module, "target": TARGET, "rows": rows}


def measure(send: process.Send, module: str, name: str) -> None:
    """Run in the fresh process."""
    library = Library(module, 2)
    start, step, depth = _BRANCHES[name]
    scope = library.namespace(_SETUP.format(start=start, step=step, depth=depth))
    best, gradients = {True: float("inf"), False: float("inf")}, {}
    for _ in range(_ROUNDS):
        for together in (False, True):
            loss = scope["graph"]()
            with library.module.autograd.parallel_branches(together):
                before = time.perf_counter()
                loss.backward()
                best[together] = min(best[together], time.perf_counter() - before)
            gradients[together] = [scope[side].grad for side in ("left", "right")]
    same = all(bool((a == b).all()) for a, b in zip(gradients[False], gradients[True], strict=True))
    send({"alone_s": best[False], "together_s": best[True], "same": same})


def render(result: dict[str, Any]) -> str:
    """Return a table with one row per graph."""
    body = []
    for row in result["rows"]:
        gain = row["gain"]["median"]
        verdict = "met" if gain >= result["target"] else "not met"
        body.append(
            [row["name"], f"{1e3 * row['alone_s']:.1f} ms", f"{1e3 * row['together_s']:.1f} ms", number(gain)]
            + [f"{result['target']}", verdict if row["same"] else "the gradients differ"]
        )
    header = ["two branches", "one thread", "two threads", "times as fast", "target", "verdict"]
    return f"branches: {result['module']}\n\n{table(header, body)}"
