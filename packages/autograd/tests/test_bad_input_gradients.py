"""Bad input while gradients are recorded: core's test cases (`rushlight_testing.bad_input`) on tensors that require grad.

A call must raise an error of the right type and record nothing, or return a result whose gradient can be computed. It
must not crash or hang. As in core, an ordinary run tries a fixed part of the cases; RUSHLIGHT_BAD_INPUT=all tries all
of them.
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
        else MEMORY,  # a sanitizer reserves the whole address space, and has a separate limit
        environment={"ASAN_OPTIONS": f"{options}:max_allocation_size_mb={MEMORY >> 20}"} if SANITIZED else {},
        patience=900 if SANITIZED else 180,
        processes=min(len(os.sched_getaffinity(0)), 4),
        provider="rushlight_autograd",
    )


def test_bad_input_with_gradients(reports: dict[str, Report]) -> None:
    assert sum(report.tried for report in reports.values()) >= len(OPS)
    faults = [f"{name}: {fault}" for name, report in reports.items() for fault in report.faults]
    # Ignore hidden operators with vectors=False: they are never called this way if gradients are needed.
    faults = [
        f for f in faults if not f.startswith(("_linalg_eig", "_linalg_svd")) or "vectors=False" not in f
    ]
    assert not faults, f"{len(faults)} cases:\n" + "\n".join(faults[:40])
