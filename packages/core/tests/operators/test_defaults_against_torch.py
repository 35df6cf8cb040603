"""Law: a call without optional arguments returns results of the shapes and dtypes that PyTorch's function returns."""

from __future__ import annotations

from dataclasses import replace

import pytest
from in_torch import OPS, call_torch, torch

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample
from rushlight_testing.operators import all_samples, call, flat

# Losses of nn.functional are also names in rushlight's main module, where PyTorch has none.
PUBLIC = [op for op in OPS if not op.base.endswith(("_loss", "_entropy")) or hasattr(torch, op.base)]


def required_arguments(op: Op, sample: Sample) -> Sample:
    """Return the sample without its optional arguments."""
    required = {a.name for a in op.schema.arguments if a.required}
    count = sum(a.required and not a.keyword_only for a in op.schema.arguments)
    kwargs = {name: value for name, value in sample.kwargs.items() if name in required}
    return replace(sample, args=sample.args[:count], kwargs=kwargs)


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in PUBLIC])
def test_defaults_are_those_of_pytorch(op: Op) -> None:
    for sample in all_samples(op):
        given = required_arguments(op, sample)
        try:
            theirs = flat(call_torch(op, given))
            ours = flat(call(op, given))
        except Exception:  # PyTorch raises errors of many classes
            continue
        assert len(ours) == len(theirs), f"{op.name}({sample.text}): {len(ours)} results, not {len(theirs)}"
        for mine, other in zip(ours, theirs, strict=True):
            if isinstance(mine, core.Tensor) and isinstance(other, torch.Tensor):
                got = tuple(mine.shape), str(mine.dtype)
                assert got == (tuple(other.shape), str(other.dtype)), f"{op.name}({sample.text}): {got}"
