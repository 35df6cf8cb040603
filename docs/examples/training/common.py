"""Functions that the programs of this folder share: options, the digits, a curve, and a check of the reached metric."""

from __future__ import annotations

import argparse
import operator
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("agg")  # this backend draws into files and needs no display

import matplotlib.pyplot as plt
import numpy as np

import rushlight as torch
from rushlight import Tensor
from rushlight.utils.data import DataLoader, TensorDataset


def digits(short: bool = False) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Images (N, 1, 8, 8) from 0 to 1 and classes: 1437 for training (320 in a short run) and 360 for testing."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = torch.from_numpy(data.images / 16).float().unsqueeze(1)
    labels = torch.from_numpy(data.target)
    order = torch.from_numpy(np.random.RandomState(0).permutation(len(images)))
    train, test = order[: 320 if short else 1437], order[1437:]
    return (images[train], labels[train]), (images[test], labels[test])


def batches(images: Tensor, labels: Tensor, size: int = 64) -> DataLoader:
    """Shuffled batches."""
    return DataLoader(TensorDataset(images, labels), batch_size=size, shuffle=True, seed=0)


def accuracy(model: torch.nn.Module, images: Tensor, labels: Tensor) -> float:
    """The fraction of the images that a model classifies correctly."""
    model.eval()
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def mosaic(images: Tensor, columns: int) -> np.ndarray:
    """One image that shows the images (N, 1, H, W) side by side."""
    count, _, height, width = images.shape
    rows = images.detach().reshape(count // columns, columns, height, width)
    return rows.transpose(1, 2).reshape(count // columns * height, columns * width).numpy()


def main(
    run: Callable[[bool], tuple[float, Sequence[float], np.ndarray | Mapping[str, Sequence[float]] | None]],
    what: str,
    goal: float,
    at_least: bool = True,
    progress: str = "loss",
) -> int:
    """Train, draw the losses and the other results, and return 1 if the metric does not reach its goal.

    Args:
        run: a function that trains, for only a few steps if its argument is true. It returns the metric, the losses, and
            either an image, a dict of further curves, or None.
        what: the name of the metric.
        goal: the value that the metric must reach, unless the run is shortened.
        at_least: whether larger values are better.
        progress: the name of the values, if `run` returns other values instead of losses.
    """
    parser = argparse.ArgumentParser(description=sys.modules[run.__module__].__doc__)
    parser.add_argument("--short", action="store_true", help="a few steps only, to see that the program runs")
    parser.add_argument("--out", type=Path, default=Path("training-out"), help="the folder of the picture")
    options = parser.parse_args()
    torch.manual_seed(0)
    began = time.perf_counter()
    figure, losses, picture = run(options.short)
    name = Path(sys.argv[0]).stem
    print(f"{name}: {what} {figure:.4g} after {len(losses)} steps, {time.perf_counter() - began:.0f} s")
    plot, axes = plt.subplots(
        1, 1 if picture is None else 2, figsize=(8, 3), squeeze=False, layout="constrained"
    )
    axes[0, 0].plot(losses)
    axes[0, 0].set(xlabel="step", ylabel=progress, title=f"{what} {figure:.4g}")
    if isinstance(picture, Mapping):
        for label, values in picture.items():
            axes[0, 1].plot(values, label=label)
        axes[0, 1].legend()
    elif picture is not None:
        axes[0, 1].imshow(picture, cmap="gray_r", vmin=0, vmax=1)
        axes[0, 1].axis("off")
    options.out.mkdir(parents=True, exist_ok=True)
    plot.savefig(options.out / f"{name}.png")
    reached = (operator.ge if at_least else operator.le)(figure, goal)
    if not options.short and not reached:
        print(f"{name}: {what} {figure:.4g} misses {goal}", file=sys.stderr)
        return 1
    return 0
