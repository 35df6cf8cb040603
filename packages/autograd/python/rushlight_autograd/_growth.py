"""The warning about autograd graphs that grow from iteration to iteration. growth.cpp finds such graphs."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight_autograd._alive import nodes_above


def warn(site: str, extended: bool, sample: Any, graphs: int) -> None:
    """Warn about a line such as `total += loss`, which keeps graphs in memory that backward() has used.

    If `extended` is true, `site` is this line. Otherwise, `site` is the line that computed `loss`. The node
    of this operation is then `sample`, and the line to warn about is the one that recorded an edge to
    `sample`.
    """
    made = ""
    if not extended:
        holders = [node.site for node in nodes_above(sample) if node.site]
        made = f" (made at {site})"
        site = holders[0] if holders else site
    file, _, line = site.rpartition(":")
    file = file.rpartition(" at ")[2]
    warnings.warn_explicit(
        f"the value that this line computes keeps {graphs} results{made} and all nodes of their graphs in memory."
        " backward() has used these graphs already, so the value can never be differentiated, and the memory in use"
        " grows with every iteration\n"
        "hint: accumulate loss.item() or loss.detach() instead of loss",
        UserWarning,
        file or "<unknown>",
        int(line) if line.isdigit() else 0,
    )
