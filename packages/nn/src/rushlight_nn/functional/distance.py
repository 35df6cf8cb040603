"""Distances and angles between vectors: core's operators."""

from __future__ import annotations

from .._core import operator

cosine_similarity = operator("cosine_similarity")
pairwise_distance = operator("pairwise_distance")
pdist = operator("pdist")
