"""The number of threads that each new process uses for computations (decision 0073)."""

from __future__ import annotations

import os

import rushlight_core as core


def share_of_threads(processes: int) -> int | None:
    """Return this process's number of threads divided by the number of new processes, but at least 1.

    Return None if the environment variable OMP_NUM_THREADS is set, which then determines the number of threads."""
    if "OMP_NUM_THREADS" in os.environ:
        return None
    return max(1, core.get_num_threads() // processes)
