"""Measure epochs of training on images that a DataLoader reads, with one of its parts switched off at a time."""

from __future__ import annotations

import os
import resource
import time
from typing import Any

import numpy as np

from .. import process, stats
from ..environment import confined
from .parts import LOADING

# Samples are uint8 images, which are cropped, flipped and normalised in NumPy, as a worker does after reading from disk.
IMAGES, SIDE, CROP, BATCH = 512, 128, 112, 32


class Images:
    """A dataset whose images are made from their index."""

    def __init__(self) -> None:
        self._pixels = np.random.default_rng(0).integers(0, 256, (64, SIDE, SIDE, 3), np.uint8)

    def __len__(self) -> int:
        return IMAGES

    def __getitem__(self, index: int) -> tuple[Any, int]:
        rng = np.random.default_rng(index)
        y, x = rng.integers(0, SIDE - CROP + 1, 2)
        image = self._pixels[index % len(self._pixels), y : y + CROP, x : x + CROP]
        if rng.random() < 0.5:
            image = image[:, ::-1]
        scaled = (image.astype(np.float32) - 127.5) / 64
        return np.ascontiguousarray(scaled.transpose(2, 0, 1)), index % 10


def measure(epochs: int = 5, rounds: int = 3) -> dict[str, dict[str, Any]]:
    """Return images per second and peak memory of each configuration in `LOADING`, whose processes take turns."""
    series: dict[str, list[float]] = {name: [] for name in LOADING}
    memory: dict[str, list[int]] = {name: [] for name in LOADING}
    problems: dict[str, str] = {}
    with confined(min(2, len(os.sched_getaffinity(0)))):
        for _ in range(rounds):
            for name, arguments in LOADING.items():
                if name in problems:
                    continue
                try:
                    seconds, peak = process.fresh(train, arguments, epochs)
                except RuntimeError as error:
                    problems[name] = str(error).strip().splitlines()[-1]
                    continue
                series[name] += seconds
                memory[name].append(peak)
    return {
        name: {"problem": problems[name]}
        if name in problems
        else {
            "wall": stats.summarize(series[name]).as_dict(),
            "images": IMAGES,
            "memory": int(np.median(memory[name])),
        }
        for name in LOADING
    }


def train(send: process.Send, arguments: dict[str, Any], epochs: int) -> None:
    """Send the seconds of each epoch but the first, and the peak memory of this process and its largest worker."""
    import rushlight as torch
    from rushlight.utils.data import DataLoader

    torch.set_num_threads(1)
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 8, 7, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    # Workers of one epoch would read the next epoch's first batches, so each epoch starts new workers.
    loader = DataLoader(
        Images(), BATCH, persistent_workers=False if arguments["num_workers"] else None, **arguments
    )
    seconds = []
    for _ in range(epochs + 1):
        start = time.perf_counter()
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        seconds.append(time.perf_counter() - start)
    kilobytes = sum(
        resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    send((seconds[1:], kilobytes * 1024))
