"""Runs functions in the ranks of a group, with one of the two implementations of groups."""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import rushlight as torch
import rushlight.distributed as dist
from rushlight_core.seams import collectives

sys.path.insert(0, str(Path(__file__).parent))
from pipe_group import make_groups


class Chosen:
    kind = "shm"


def _join(rank: int, size: int, path: Path) -> None:
    store = dist.FileStore(str(path), size)
    dist.init_process_group("shm", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=30))


def _rank(
    connection: Any, function: Callable[..., Any], rank: int, join: Callable[[], Any], args: Any
) -> None:
    torch.set_num_threads(1)
    try:
        collectives.set_default_group(join() or collectives.default_group())
        connection.send((True, function(rank, *args)))
    except BaseException:
        connection.send((False, traceback.format_exc()))
    os._exit(0)


def run_ranks(function: Callable[..., Any], size: int, tmp_path: Path, *args: Any) -> list[Any]:
    context = multiprocessing.get_context("fork")
    ends, processes, results = [], [], []
    shm = [partial(_join, rank, size, tmp_path / "store") for rank in range(size)]
    joins = shm if Chosen.kind == "shm" else make_groups(size)
    for rank in range(size):
        ours, theirs = context.Pipe()
        process = context.Process(target=_rank, args=(theirs, function, rank, joins[rank], args))
        process.start()
        theirs.close()
        ends.append(ours)
        processes.append(process)
    for ours, process in zip(ends, processes, strict=True):
        try:
            good, value = ours.recv()
        except EOFError:
            good, value = True, "died"
        process.join()
        assert good, value
        results.append(value)
    return results
