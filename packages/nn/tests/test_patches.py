"""Layers for patches and channels, and their inverses."""

from __future__ import annotations

import pytest

import rushlight_core as core
import rushlight_nn as nn
import rushlight_nn.functional as F


def test_fold_adds_what_unfold_took() -> None:
    """Each pixel is added once for each window that contains it."""
    image = core.randn(2, 3, 5, 6)
    options = {"kernel_size": (2, 3), "padding": 1, "stride": (1, 2)}
    count = F.fold(F.unfold(core.ones(2, 3, 5, 6), **options), (5, 6), **options)
    back = nn.Fold((5, 6), **options)(nn.Unfold(**options)(image))
    assert core.allclose(back, image * count, atol=1e-5)
    assert core.equal(F.unfold(image[0], 2), F.unfold(image, 2)[0])
    with pytest.raises(RuntimeError, match="larger than the padded image"):
        F.unfold(image, 9)


def test_unfold_makes_a_convolution_a_product() -> None:
    """A convolution is the product of the weight matrix and the columns of unfold."""
    image, weight = core.randn(2, 3, 5, 6), core.randn(4, 3, 2, 2)
    columns = weight.view(4, -1) @ F.unfold(image, 2)
    assert core.allclose(columns.view(2, 4, 4, 5), F.conv2d(image, weight), atol=1e-4)


def test_shuffles() -> None:
    """Unshuffling inverts a shuffle, and the channels of groups are interleaved."""
    x = core.randn(2, 8, 3, 4)
    assert core.equal(nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(x)), x)
    assert core.equal(nn.ChannelShuffle(4)(nn.ChannelShuffle(2)(x)), x)
    assert repr(nn.PixelShuffle(2)) == "PixelShuffle(upscale_factor=2)"


def test_distances() -> None:
    """The layers return the same results as the functions."""
    a, b = core.randn(4, 3), core.randn(4, 3)
    assert core.equal(nn.PairwiseDistance(1, keepdim=True)(a, b), F.pairwise_distance(a, b, 1, keepdim=True))
    assert core.equal(nn.CosineSimilarity()(a, b), F.cosine_similarity(a, b))
    assert core.allclose(F.pdist(a)[0], (a[0] - a[1]).norm())
