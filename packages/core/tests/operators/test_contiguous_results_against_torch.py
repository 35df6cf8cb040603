"""Law: a result that is contiguous in PyTorch is contiguous, so that programs can take views of it.

The inputs are contiguous: results for other inputs are in packages/rushlight/tests/test_strides_against_torch.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from in_torch import OPS, call_torch, torch

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing.operators import all_samples, call, flat


def is_dense(value: Any) -> bool:
    return not isinstance(value, core.Tensor) or value.is_contiguous()


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS])
def test_results_are_contiguous_where_those_of_pytorch_are(op: Op) -> None:
    for sample in all_samples(op):
        if not all(map(is_dense, flat([*sample.args, *sample.kwargs.values()]))):
            continue
        try:
            theirs = flat(call_torch(op, sample))
            ours = flat(call(op, sample))
        except Exception:  # PyTorch raises errors of many classes
            continue
        for i, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
            if isinstance(mine, core.Tensor) and isinstance(other, torch.Tensor) and other.is_contiguous():
                assert mine.is_contiguous(), (
                    f"{op.name}({sample.text}): result {i} has strides {mine.stride()}"
                )
