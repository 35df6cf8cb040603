"""Fine-tuning from a `.pt` file: a network that learned the digits 0 to 4 learns 5 to 9 from ten images of each.

PyTorch can read this file, and could also have written it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from common import accuracy, batches, digits, main

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.nn import functional as F


def network() -> nn.Sequential:
    """images (N, 1, 8, 8) -> scores (N, 5)."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(),
        nn.Linear(64 * 4 * 4, 5),
    )  # fmt: skip


def train(model: nn.Module, images: Tensor, labels: Tensor, epochs: int, lr: float) -> list[float]:
    """Train the parameters that require gradients, and return the losses."""
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    losses: list[float] = []
    for _ in range(epochs):
        model.train()
        for batch, classes in batches(images, labels, 32):
            loss = F.cross_entropy(model(batch), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def run(short: bool) -> tuple[float, list[float], None]:
    """Train on the first digits, save, load into a new network, replace its head and train with few images."""
    (images, labels), (test, test_labels) = digits(short)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "first-digits.pt"
        model = network()
        first = labels < 5
        train(model, images[first], labels[first], 1 if short else 8, 1e-3)
        torch.save(model.state_dict(), file)

        model = network()
        model.load_state_dict(torch.load(file))
    model[-1] = nn.Linear(64 * 4 * 4, 5)  # a head for the new classes
    model[0].requires_grad_(False)  # the first filters stay
    few = torch.cat([(labels == digit).nonzero()[:10, 0] for digit in range(5, 10)])
    losses = train(model, images[few], labels[few] - 5, 2 if short else 30, 1e-3)
    later = test_labels >= 5
    return accuracy(model, test[later], test_labels[later] - 5), losses, None


if __name__ == "__main__":
    sys.exit(main(run, "test accuracy", 0.93))
