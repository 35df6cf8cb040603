"""Functions for distances and angles between vectors. All these functions are operators of core."""

from __future__ import annotations

from .._core import operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight_core import cosine_similarity as cosine_similarity
    from rushlight_core import pairwise_distance as pairwise_distance
    from rushlight_core import pdist as pdist
else:
    cosine_similarity = operator("cosine_similarity")
    pairwise_distance = operator("pairwise_distance")
    pdist = operator("pdist")
