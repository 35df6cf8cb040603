"""ResNet-18 (He et al. 2016) on the digits, with the stem for small images: a 3x3 convolution and no pooling."""

from __future__ import annotations

import sys
from itertools import pairwise

from common import accuracy, batches, digits, main

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.nn import functional as F


class Block(nn.Module):
    """Two convolutions, and a shortcut around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.first_norm(self.first(x)))
        return F.relu(self.second_norm(self.second(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    """images (N, 1, H, W) -> scores (N, classes)."""

    def __init__(self, classes: int = 10, width: int = 64) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        stages: list[nn.Module] = []
        for stage, (inputs, outputs) in enumerate(pairwise(widths)):
            stages += [Block(inputs, outputs, 1 if stage == 0 else 2), Block(outputs, outputs, 1)]
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(8 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.stages(self.stem(x)).mean((2, 3)))


def run(short: bool) -> tuple[float, list[float], None]:
    """Train with SGD and a learning rate that rises and then falls."""
    train, test = digits(short)
    model = ResNet18(width=4 if short else 64)
    loader = batches(*train)
    steps = len(loader) * (1 if short else 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=steps)
    losses: list[float] = []
    while len(losses) < steps:
        model.train()
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
    return accuracy(model, *test), losses, None


if __name__ == "__main__":
    sys.exit(main(run, "test accuracy", 0.97))
