"""The tasks, written with PyTorch's public names; rushlight runs this file unchanged.

A task trains a model without end. It evaluates the model after each epoch, or after every 20 steps, and yields the metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..table1.models import GPT


class Residual(nn.Module):
    """The basic block of He, Zhang, Ren and Sun, "Deep residual learning for image recognition" (2016)."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inside, outside, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outside),
            nn.ReLU(),
            nn.Conv2d(outside, outside, 3, padding=1, bias=False),
            nn.BatchNorm2d(outside),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride=stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.layers(x) + self.shortcut(x))


def resnet() -> nn.Module:
    """Return a ResNet of 14 layers for images of 8 x 8 pixels."""
    stages: list[nn.Module] = [nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    for inside, outside, stride in ((32, 32, 1), (32, 64, 2), (64, 128, 2)):
        stages += [Residual(inside, outside, stride), Residual(outside, outside, 1)]
    return nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))


def digits() -> Iterator[float]:
    """Yield the accuracy on 450 of scikit-learn's handwritten digits, after each epoch of training on the other 1347."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    x = torch.from_numpy((images / 16).astype("float32")).reshape(-1, 1, 8, 8)
    y = torch.from_numpy(labels)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))  # all seeds use the same split
    train, test = order[:1347], order[1347:]
    model = resnet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    while True:
        model.train()
        for batch in train[torch.randperm(len(train))].split(64):
            loss = F.cross_entropy(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            yield (model(x[test]).argmax(1) == y[test]).float().mean().item()


def characters() -> Iterator[float]:
    """Yield the nats per character of a GPT on a tenth of Python's manual, after every 20 training steps on the rest."""
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))
    numbers = {character: i for i, character in enumerate(sorted(set(text)))}
    corpus = torch.tensor([numbers[character] for character in text])
    length, held_out = 128, len(corpus) // 10
    train, test = corpus[held_out:], corpus[: 16 * (length + 1)].reshape(16, length + 1)
    model = GPT(len(numbers), length, 128, heads=4, layers=4, dropout=0.0)
    for parameter in model.parameters():  # the initial values of GPT-2
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.02)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
    offsets = torch.arange(length + 1)
    while True:
        model.train()
        for _ in range(20):
            rows = train[torch.randint(len(train) - length, (16, 1)) + offsets]
            loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            yield F.cross_entropy(model(test[:, :-1]).flatten(0, 1), test[:, 1:].flatten()).item()


@dataclass(frozen=True)
class Task:
    """run: trains, and yields the metric. figure: the name of the metric. target: the value to reach.

    at_least: whether larger values are better. parts: the largest number of evaluations.
    """

    run: Callable[[], Iterator[float]]
    figure: str
    target: float
    at_least: bool
    parts: int

    def reached(self, figure: float) -> bool:
        return figure >= self.target if self.at_least else figure <= self.target


TASKS = {
    "digits": Task(digits, "accuracy", 0.985, at_least=True, parts=40),
    "characters": Task(characters, "nats per character", 2.0, at_least=False, parts=60),
}
