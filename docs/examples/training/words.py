"""A word-level language model: an LSTM reads the manual that comes with Python, and is compared with word frequencies.

The text is `pydoc_data.topics`, which every CPython has, so that nothing is downloaded.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pydoc_data.topics import topics

from common import main

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.nn import functional as F

WORDS = 1500  # size of the vocabulary; all other words share one number
LENGTH, BATCH = 24, 32


def corpus(limit: int) -> Tensor:
    """The words of the text as numbers. The number 0 stands for all rare words."""
    words = re.findall(r"[a-z]+|[.,]", " ".join(topics[name] for name in sorted(topics)).lower())[:limit]
    numbers = {word: number for number, (word, _) in enumerate(Counter(words).most_common(WORDS - 1), 1)}
    return torch.tensor([numbers.get(word, 0) for word in words])


class Model(nn.Module):
    """words (N, T) -> scores of the next words (N, T, WORDS). The embedding and the head share their weight."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(width, WORDS)
        self.head.weight = self.embedding.weight

    def forward(self, words: Tensor) -> Tensor:
        outputs, _ = self.lstm(self.dropout(self.embedding(words)))
        return self.head(self.dropout(outputs))


def run(short: bool) -> tuple[float, list[float], None]:
    """Train on nine tenths of the text. The metric is the perplexity of the rest, divided by that of word frequencies."""
    text = corpus(3000 if short else 40000)
    rows = text[: len(text) // (LENGTH + 1) * (LENGTH + 1)].reshape(-1, LENGTH + 1)
    rows = rows[torch.randperm(len(rows))]
    train, test = rows[: len(rows) * 9 // 10], rows[len(rows) * 9 // 10 :]
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses: list[float] = []
    for _ in range(1 if short else 5):
        model.train()
        for batch in train[torch.randperm(len(train))].split(BATCH):
            loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        loss = F.cross_entropy(model(test[:, :-1]).flatten(0, 1), test[:, 1:].flatten())
    counts = torch.bincount(train.flatten(), minlength=WORDS) + 1.0
    frequencies = -(counts / counts.sum()).log()[test[:, 1:]].mean()
    return (loss - frequencies).exp().item(), losses, None


if __name__ == "__main__":
    sys.exit(main(run, "perplexity over that of word frequencies", 0.5, at_least=False))
