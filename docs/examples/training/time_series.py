"""A forecast: an LSTM (Hochreiter and Schmidhuber 1997) predicts the next value of a series, and continues the series."""

from __future__ import annotations

import math
import sys

from common import batches, main

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.nn import functional as F

WINDOW = 40
AHEAD = 60  # steps that are forecast by feeding predictions back


class Forecaster(nn.Module):
    """values (N, T, 1), and the state before them -> the next value at each time (N, T, 1), and the state after them."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, width, batch_first=True)
        self.output = nn.Linear(width, 1)

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        hidden, state = self.lstm(x, state)
        return x + self.output(hidden), state


def forecast(model: Forecaster, window: Tensor) -> list[float]:
    """Predict the steps after a window (1, T, 1)."""
    value, state = model(window)
    values = [value[:, -1:]]
    for _ in range(AHEAD - 1):
        value, state = model(values[-1], state)
        values.append(value)
    return torch.cat(values, 1).flatten().tolist()


def run(short: bool) -> tuple[float, list[float], dict[str, list[float]]]:
    """Train on the first part of a series. The metric is the error on the rest, relative to repeating the last value."""
    time = torch.arange(1500.0)
    series = torch.sin(2 * math.pi * time / 25) + 0.5 * torch.sin(2 * math.pi * time / 60)
    series += 0.05 * torch.randn(len(time))
    windows = series.unfold(0, WINDOW + 1, 1).unsqueeze(2)
    inputs, targets = windows[:, :-1], windows[:, 1:]
    train, test = (
        slice(0, 256 if short else 1000),
        slice(1000 + WINDOW, None),
    )  # windows of both parts do not overlap
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    epochs = 1 if short else 30
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    losses: list[float] = []
    for _ in range(epochs):
        for x, y in batches(inputs[train], targets[train]):
            loss = F.mse_loss(model(x)[0], y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
    model.eval()
    with torch.no_grad():
        last, wanted = inputs[test][:, -1], targets[test][:, -1]
        error = F.mse_loss(model(inputs[test])[0][:, -1], wanted) / F.mse_loss(last, wanted)
        begin = 1000 + WINDOW
        curves = {
            "series": series[begin + WINDOW : begin + WINDOW + AHEAD].tolist(),
            "forecast": forecast(model, inputs[begin : begin + 1]),
        }
    return error.item(), losses, curves


if __name__ == "__main__":
    sys.exit(main(run, "square error over that of the last value", 0.2, at_least=False))
