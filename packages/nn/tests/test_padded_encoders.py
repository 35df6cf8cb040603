"""Results of TransformerEncoder at padded positions: zeros in evaluation mode, under the same conditions as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight_core as core
import rushlight_nn as nn
from rushlight_nn.layers import transformer

AT_THE_END = [[False, False, True, True], [False, False, False, True], [True, True, True, True]]
AT_THE_BEGINNING = [[True, True, False, False], [True, False, False, False], [False, False, False, False]]
DEFAULTS: dict[str, Any] = {"d_model": 8, "nhead": 2, "dim_feedforward": 16, "batch_first": True}

# settings of the layer, settings of the encoder, whether it evaluates, whether parameters require gradients, mask, zeros
CASES: dict[str, Any] = {
    "evaluation": ({}, {}, True, False, AT_THE_END, True),
    "training": ({"dropout": 0.0}, {}, False, False, AT_THE_END[:2], False),
    "gradients": ({}, {}, True, True, AT_THE_END[:2], False),
    "not wanted": ({}, {"enable_nested_tensor": False}, True, False, AT_THE_END[:2], False),
    "padding at the beginning": ({}, {}, True, False, AT_THE_BEGINNING, False),
    "unchecked": ({}, {"mask_check": False}, True, False, AT_THE_BEGINNING, True),
    "norm_first": ({"norm_first": True}, {}, True, False, AT_THE_END[:2], False),
    "batch second": ({"batch_first": False}, {}, True, False, AT_THE_END[:2], False),
    "one head": ({"nhead": 1}, {}, True, False, AT_THE_END[:2], False),
    "no bias": ({"bias": False}, {}, True, False, AT_THE_END[:2], False),
    "gelu": ({"activation": "gelu"}, {}, True, False, AT_THE_END, True),
}


def make(library: Any, case: str) -> tuple[Any, list[list[bool]], bool]:
    layer, options, evaluates, gradients, mask, zeros = CASES[case]
    encoder = library.TransformerEncoder(
        library.TransformerEncoderLayer(**{**DEFAULTS, **layer}), 2, **options
    )
    encoder.train(not evaluates).requires_grad_(gradients)
    return encoder, mask, zeros


@pytest.mark.parametrize("case", CASES)
def test_where_padding_is_zero(case: str) -> None:
    encoder, mask, zeros = make(nn, case)
    x = core.randn(len(mask), 4, 8)
    if case == "batch second":
        x = x.transpose(0, 1)
    result = encoder(x, src_key_padding_mask=core.tensor(mask)).detach()
    if case == "batch second":
        result = result.transpose(0, 1)
    lengths = [row.count(False) for row in mask]
    for sequence, length in zip(result, lengths, strict=True):
        assert bool((sequence[length:] == 0).all()) == (zeros or length == 4)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore")
def test_padding_against_torch(case: str) -> None:
    torch = pytest.importorskip("torch")
    theirs, mask, _ = make(torch.nn, case)
    ours, _, _ = make(nn, case)
    ours.load_state_dict(
        {key: core.from_numpy(v.detach().numpy().copy()) for key, v in theirs.state_dict().items()}
    )
    x = torch.randn(len(mask), 4, 8)
    if case == "batch second":
        x = x.transpose(0, 1).contiguous()
    expected = theirs(x, src_key_padding_mask=torch.tensor(mask)).detach().numpy()
    result = ours(core.from_numpy(x.numpy()), src_key_padding_mask=core.tensor(mask)).detach().numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_what_else_decides() -> None:
    layer = nn.TransformerEncoderLayer(**DEFAULTS)
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8)).eval().requires_grad_(False)
    encoder.norm.bias.fill_(3.0)
    x, padding = core.randn(3, 4, 8), core.tensor(AT_THE_END)
    usual = encoder(x, src_key_padding_mask=padding)
    assert (usual[padding] == 3.0).all()  # the last normalisation is applied to the zeros
    assert core.equal(
        encoder(x, src_key_padding_mask=padding.float()), usual
    )  # numbers other than 0 mask a position, too
    other = encoder(x, core.zeros(4, 4), padding.float().masked_fill(padding, -1.0))
    assert not (other[padding] == 3.0).any()
    with core.no_grad():
        assert core.equal(encoder.requires_grad_(True)(x, src_key_padding_mask=padding), usual)
    encoder.requires_grad_(False)
    try:
        transformer.set_fastpath_enabled(False)
        assert not transformer.get_fastpath_enabled()
        assert not (encoder(x[:2], src_key_padding_mask=padding[:2])[padding[:2]] == 3.0).any()
    finally:
        transformer.set_fastpath_enabled(True)
