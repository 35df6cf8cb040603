"""The file from which every library starts: the weights of a model as rushlight initialises them, and a batch.

    python -m benchmarks.table1.weights resnet50 8 start.npz

The file is NumPy's. Weights have PyTorch's names and layouts; the batch's tensors are "batch 0", "batch 1", ….
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]


def write(name: str, size: int, path: Path) -> None:
    """Initialise a model of `workloads.WORKLOADS`, and write it with a batch of `size` samples."""
    import rushlight.as_torch

    rushlight.as_torch.install()
    import torch

    from .workloads import WORKLOADS

    torch.manual_seed(0)
    workload = WORKLOADS[name]
    arrays = {name: parameter.detach().numpy() for name, parameter in workload.build().named_parameters()}
    arrays |= {f"batch {i}": tensor.numpy() for i, tensor in enumerate(workload.batch(size))}
    np.savez(path, **arrays)


def read(path: str | Path, samples: int | None = None) -> tuple[dict[str, Array], tuple[Array, ...]]:
    """Return the weights by name, and the first `samples` samples of the batch, by default all."""
    with np.load(path) as file:
        weights = {name: file[name] for name in file.files if not name.startswith("batch ")}
        batch = tuple(file[f"batch {i}"][:samples] for i in range(len(file.files) - len(weights)))
    return weights, batch


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
