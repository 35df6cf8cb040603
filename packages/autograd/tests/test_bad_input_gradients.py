"""Bad input where gradients are recorded: core's own cases (`rushlight_testing.bad_input`) on tensors that require grad.

What comes back is a typed error that leaves no history behind, or a result whose gradient can be computed; never a signal or
a hang. As in core, an ordinary run tries a part of the cases, always the same; RUSHLIGHT_BAD_INPUT=all tries all of them.
"""

from __future__ import annotations

import os

import pytest

from rushlight_core.codegen.loader import load_ops
from rushlight_testing.bad_input import Report, hunt

SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
EVERY = 1 if os.environ.get("RUSHLIGHT_BAD_INPUT") == "all" else 64
MEMORY = 512 << 20
OPS = [op for op in load_ops() if op.differentiable and any(a.type.is_tensor for a in op.schema.arguments)]


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    options = os.environ.get("ASAN_OPTIONS", "")
    return hunt(
        OPS,
        every=EVERY,
        memory=0
        if SANITIZED
        else MEMORY,  # a sanitizer reserves all addresses for itself; it has a limit of its own
        environment={"ASAN_OPTIONS": f"{options}:max_allocation_size_mb={MEMORY >> 20}"} if SANITIZED else {},
        patience=900 if SANITIZED else 180,
        processes=min(len(os.sched_getaffinity(0)), 4),
        provider="rushlight_autograd",
    )


def test_bad_input_with_gradients(reports: dict[str, Report]) -> None:
    assert sum(report.tried for report in reports.values()) >= len(OPS)
    faults = [f"{name}: {fault}" for name, report in reports.items() for fault in report.faults]
    # Hidden ones, which are not asked to leave out vectors where gradients are wanted.
    faults = [
        f for f in faults if not f.startswith(("_linalg_eig", "_linalg_svd")) or "vectors=False" not in f
    ]
    assert not faults, f"{len(faults)} cases:\n" + "\n".join(faults[:40])
