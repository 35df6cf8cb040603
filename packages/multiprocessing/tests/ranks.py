"""Ranks of a group as forked processes, for the tests of collectives."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from rushlight_multiprocessing import distributed as dist


def _rank(connection: Any, function: Callable[..., Any], rank: int, size: int, path: Path, args: Any) -> None:
    try:
        store = dist.FileStore(str(path), size)
        dist.init_process_group("shm", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=20))
        connection.send((True, function(rank, *args)))
        with contextlib.suppress(Exception):
            dist.destroy_process_group()
    except BaseException:
        connection.send((False, traceback.format_exc()))
    os._exit(0)


def run_ranks(function: Callable[..., Any], size: int, tmp_path: Path, *args: Any) -> list[Any]:
    """Run `function(rank, *args)` in the processes of one group. Return the results, with "died" for killed processes."""
    context = multiprocessing.get_context("fork")
    path = tmp_path / f"store-{len(os.listdir(tmp_path))}"
    ends, processes = [], []
    for rank in range(size):
        ours, theirs = context.Pipe()
        process = context.Process(target=_rank, args=(theirs, function, rank, size, path, args))
        process.start()
        theirs.close()
        ends.append(ours)
        processes.append(process)
    results = []
    for ours, process in zip(ends, processes, strict=True):
        try:
            good, value = ours.recv()
        except EOFError:
            good, value = True, "died"
        ours.close()
        process.join()
        assert good, value
        results.append(value)
    return results
