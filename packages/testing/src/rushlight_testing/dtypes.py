"""Determine the dtypes that an operator accepts by calling it, to check `dtypes` in its YAML entry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import rushlight_core as core
from rushlight_core.codegen.dtypes import ALL as DTYPES
from rushlight_core.codegen.dtypes import FLOAT8
from rushlight_core.codegen.model import Op
from rushlight_testing.operators import (
    TYPED_ERRORS,
    all_samples,
    call,
    is_random,
    map_tensors,
    tensors_in,
)
from rushlight_testing.samples import Sample, arguments_of

__all__ = ["DTYPES", "accepted_dtypes", "samples_of_dtype"]

# Samples are not written for these dtypes. Samples of wider unsigned integers have the values of uint8, and samples of
# float8 have the values of float32, rounded.
_WRITTEN = {"uint16": "uint8", "uint32": "uint8", "uint64": "uint8"} | dict.fromkeys(FLOAT8, "float32")


def samples_of_dtype(op: Op, dtype: str) -> Iterator[Sample]:
    """Yield the samples in the YAML entry of an operator, with their tensors converted to a dtype.

    Only the tensors whose dtype the sample does not specify are converted. If the sample specifies the dtype of every
    tensor, all tensors with the dtype of the first tensor are converted.

    Args:
        op: the operator's YAML entry.
        dtype: the name of the dtype, such as "int32".

    Example:
        >>> from rushlight_testing.operators import operators
        >>> op = next(op for op in operators() if op.name == "add")
        >>> {t.dtype for sample in samples_of_dtype(op, "int32") for t in tensors_in(sample.args)}
        {torch.int32}
    """
    plain = list(all_samples(op))
    written = list(all_samples(op, _WRITTEN.get(dtype, dtype)))
    for sample, other in zip(plain, written, strict=True):
        tensors = tensors_in([*sample.args, *sample.kwargs.values()])
        if not tensors:
            continue
        wanted = getattr(core, dtype)
        if all(t.dtype != core.float32 for t in tensors):
            chosen, replaced = sample, [tensors[0].dtype]
        else:  # tensors from literals in samples are float32
            chosen, replaced = other, [core.float32, getattr(core, _WRITTEN.get(dtype, dtype))]

        def convert(t: Any, replaced: list[Any] = replaced, wanted: Any = wanted) -> Any:
            return t.to(wanted) if t.dtype in replaced else t

        yield map_tensors(convert, chosen)


def _asks_for_another(op: Op, sample: Sample) -> bool:
    """Return whether the arguments include a number or a `dtype` that may convert the tensors to another dtype."""
    given = arguments_of(op, sample)
    numbers = ("Scalar", "TensorOrScalar", "dtype")
    return any(
        a.type.name.rstrip("?") in numbers
        and given[a.name] is not None
        and not isinstance(given[a.name], core.Tensor)
        and given[a.name] != a.default
        for a in op.schema.arguments
    )


def accepted_dtypes(op: Op, alone: bool = False) -> set[str]:
    """Return the names of the dtypes that an operator accepts in at least one sample.

    Args:
        op: the operator's YAML entry.
        alone: whether to leave out samples in which a number or a `dtype` may convert the tensors to
            another dtype.

    Example:
        >>> from rushlight_testing.operators import operators
        >>> op = next(op for op in operators() if op.name == "bitwise_not")
        >>> sorted(accepted_dtypes(op))
        ['bool', 'int16', 'int32', 'int64', 'int8', 'uint16', 'uint32', 'uint64', 'uint8']
    """
    accepted = set()
    for dtype in DTYPES:
        samples = list(samples_of_dtype(op, dtype))
        if alone:
            samples = [s for s in samples if not _asks_for_another(op, s)]
        for sample in samples:
            if is_random(op):
                core.manual_seed(0)
            try:
                call(op, sample)
            except TYPED_ERRORS:
                continue
            accepted.add(dtype)
            break
    return accepted
