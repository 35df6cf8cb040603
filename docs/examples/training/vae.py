"""A variational autoencoder (Kingma and Welling 2014) on the digits: images, their reconstructions, and new ones."""

from __future__ import annotations

import sys

import numpy as np
from common import batches, digits, main, mosaic

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.distributions import Normal, kl_divergence
from rushlight.nn import functional as F

CODE = 8  # numbers that encode an image


class Autoencoder(nn.Module):
    """images -> scores of the pixels, and the distribution from which the code was drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2 * CODE))
        self.decoder = nn.Sequential(
            nn.Linear(CODE, 128), nn.ReLU(), nn.Linear(128, 64), nn.Unflatten(1, (1, 8, 8))
        )

    def forward(self, images: Tensor) -> tuple[Tensor, Normal]:
        mean, scale = self.encoder(images).chunk(2, dim=1)
        codes = Normal(mean, F.softplus(scale) + 1e-4)
        return self.decoder(codes.rsample()), codes


def bound(model: Autoencoder, images: Tensor) -> Tensor:
    """The negative evidence lower bound of an image, in nats."""
    scores, codes = model(images)
    prior = Normal(torch.zeros(CODE), torch.ones(CODE))
    misfit = F.binary_cross_entropy_with_logits(scores, images, reduction="sum")
    return (misfit + kl_divergence(codes, prior).sum()) / len(images)


def run(short: bool) -> tuple[float, list[float], np.ndarray]:
    """Train, and draw sixteen images, their reconstructions, and images that the decoder makes from random codes."""
    train, (test, _) = digits(short)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses: list[float] = []
    for _ in range(2 if short else 60):
        for images, _ in batches(*train):
            loss = bound(model, images)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    with torch.no_grad():
        drawn = model.decoder(torch.randn(32, CODE)).sigmoid()
        picture = mosaic(torch.cat([test[:16], model(test[:16])[0].sigmoid(), drawn]), 16)
        return bound(model, test).item(), losses, picture


if __name__ == "__main__":
    sys.exit(main(run, "bound of the test images in nats", 25.0, at_least=False))
