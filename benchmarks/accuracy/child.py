"""A process that trains one task with one library until its target is reached: LIBRARY TASK SEED THREADS.

It prints the seconds and the figures as JSON.
"""

from __future__ import annotations

import json
import sys
import time


def main(library: str, name: str, seed: int, threads: int) -> None:
    if library == "rushlight":
        import rushlight.as_torch

        rushlight.as_torch.install()
    import torch

    from .tasks import TASKS

    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    task = TASKS[name]
    figures: list[float] = []
    start = time.perf_counter()
    for figure in task.run():
        figures.append(figure)
        if task.reached(figure) or len(figures) == task.parts:
            break
    seconds = time.perf_counter() - start
    json.dump({"seconds": seconds, "figures": figures, "reached": task.reached(figures[-1])}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
