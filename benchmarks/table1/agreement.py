"""Check that libraries compute the same: compare the losses of their first steps, without dropout.

All start from the same weights and train on the same batch. The first loss checks the forward pass; the next ones also check
the gradients and the optimizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

STEPS = 3

# Limits for the relative difference of the first loss, and of the changes of later losses relative to ours.
FIRST, MOVED = 1e-4, 0.05


def compare(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    """Return the entry of the table: the losses, their differences, and a problem if these are too large.

    first: the relative difference of the first losses. moved: the largest difference between the changes of the losses since
    the first step, relative to the largest change of ours.
    """
    first = abs(theirs[0] - ours[0]) / abs(ours[0])
    moves = [(ours[i] - ours[0], theirs[i] - theirs[0]) for i in range(1, len(ours))]
    moved = max(abs(a - b) for a, b in moves) / max(abs(a) for a, _ in moves)
    found: dict[str, Any] = {"ours": list(ours), "theirs": list(theirs), "first": first, "moved": moved}
    if not (first <= FIRST and moved <= MOVED):  # so that NaN is a problem
        listed = [", ".join(f"{loss:.6g}" for loss in losses) for losses in (theirs, ours)]
        found["problem"] = f"the losses of its first steps are {listed[0]}; ours are {listed[1]}"
    return found
