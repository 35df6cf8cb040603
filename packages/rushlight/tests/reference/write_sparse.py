"""Writes sparse.json: a table of five rows that PyTorch 2.13 has trained for three steps with sparse gradients.

    python packages/rushlight/tests/reference/write_sparse.py

`test_sparse_gradients.py` trains the same table.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

ROWS = [torch.tensor([[3, 1], [1, 0]]), torch.tensor([4, 4, 3]), torch.tensor([0])]
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "SparseAdam": lambda p: torch.optim.SparseAdam(p, lr=0.1),
    "SparseAdam maximize": lambda p: torch.optim.SparseAdam(p, lr=0.1, betas=(0.8, 0.9), maximize=True),
}


def trained(name: str) -> list[list[float]]:
    layer = torch.nn.Embedding(5, 3, sparse=True, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(15.0).reshape(5, 3) / 7 - 1)
    optimizer = OPTIMIZERS[name](list(layer.parameters()))
    for step, rows in enumerate(ROWS):
        optimizer.zero_grad()
        out = layer(rows)
        (out * out * (step + 1)).sum().backward()
        optimizer.step()
    return layer.weight.tolist()


if __name__ == "__main__":
    text = json.dumps({name: trained(name) for name in OPTIMIZERS}, indent=1)
    Path(__file__).with_name("sparse.json").write_text(text + "\n")
