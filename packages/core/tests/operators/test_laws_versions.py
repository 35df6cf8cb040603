"""Law: the results of an operator that writes to none of its arguments have version 0.

A program that compares versions to detect writes does not see how an operator computes its results.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample
from rushlight_testing.operators import (
    TYPED_ERRORS,
    all_samples,
    boxed,
    call,
    flat,
    is_random,
    map_tensors,
    operators,
    random_sample,
)
from rushlight_testing.variants import SIZES

OPS = [op for op in operators() if not any(a.write for a in op.schema.arguments)]


def calls(op: Op) -> Iterator[tuple[str, Any]]:
    """Yield the text and the result of each call that works, for the samples and for other sizes."""
    samples: list[Sample] = [random_sample(op)] if is_random(op) else list(all_samples(op))
    for sample in samples:
        others = [(f"{sample.text}, {name}", map_tensors(cut, sample)) for name, cut in SIZES.items()]
        for text, tensors in [(sample.text, sample), *others]:
            given = map_tensors(lambda t: t.clone(), tensors)  # of version 0
            with contextlib.suppress(*TYPED_ERRORS):  # other sizes may not fit
                yield text, boxed(op, given) if is_random(op) else call(op, given)


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in OPS if op.samples or is_random(op)])
def test_a_result_has_version_0(op: Op) -> None:
    for text, made in calls(op):
        for result in flat(made):
            if isinstance(result, core.Tensor):
                assert result._version == 0, f"{op.name}({text}): version {result._version}"
