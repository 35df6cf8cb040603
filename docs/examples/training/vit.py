"""A vision transformer (Dosovitskiy et al. 2021) on the digits: the tokens are sixteen patches of 2x2 pixels."""

from __future__ import annotations

import sys

from common import accuracy, batches, digits, main

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.nn import functional as F


class VisionTransformer(nn.Module):
    """images (N, 1, 8, 8) -> scores (N, 10)."""

    def __init__(self, width: int = 64, depth: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, kernel_size=2, stride=2)
        self.start = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, 17, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(
            layer, depth, norm=nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        words = self.patches(x).flatten(2).transpose(1, 2)
        words = torch.cat([self.start.expand(len(x), -1, -1), words], dim=1) + self.positions
        return self.head(self.layers(words)[:, 0])


def run(short: bool) -> tuple[float, list[float], None]:
    """Train with AdamW and a learning rate that falls like a cosine."""
    train, test = digits(short)
    model = VisionTransformer()
    loader = batches(*train)
    epochs = 1 if short else 30
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    losses: list[float] = []
    for _ in range(epochs):
        model.train()
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
    return accuracy(model, *test), losses, None


if __name__ == "__main__":
    sys.exit(main(run, "test accuracy", 0.95))
