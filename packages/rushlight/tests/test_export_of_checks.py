"""Layers that check values in Python can be exported: the program makes the checks in each run, or raises in it."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight import nn


def test_embedding_bag_with_offsets() -> None:
    bag = nn.EmbeddingBag(10, 4)
    indices, offsets = torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 3])
    run = torch.export.export(bag, (indices, offsets)).module()
    for other in ([0, 3], [0, 5], [0, 6], [0, 0]):
        assert torch.equal(
            run(indices.flip(0), torch.tensor(other)), bag(indices.flip(0), torch.tensor(other))
        )
    for wrong in ([1, 3], [0, 9]):
        for call in (bag, run):
            with pytest.raises((RuntimeError, IndexError)):
                call(indices, torch.tensor(wrong))


@pytest.mark.parametrize("floating", [False, True])
def test_padded_encoder(floating: bool) -> None:
    """The masked positions become zero if they are at the end of each sequence, and stay otherwise."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)

        def forward(self, x: Any, mask: Any) -> Any:
            return self.encoder(x, src_key_padding_mask=mask)

    model = Model().eval()
    at_end = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]]).bool()
    inside = torch.tensor([[0, 1, 0, 1, 1], [0, 0, 0, 0, 1]]).bool()

    def as_mask(hidden: Any) -> Any:
        return torch.zeros(2, 5).masked_fill(hidden, float("-inf")) if floating else hidden

    with torch.no_grad():
        run = torch.export.export(model, (torch.randn(2, 5, 8), as_mask(at_end))).module()
        for hidden in (at_end, inside):
            x = torch.randn(2, 5, 8)
            assert torch.equal(run(x, as_mask(hidden)), model(x, as_mask(hidden)))
        assert not model(x, as_mask(at_end))[0, 3:].any()
