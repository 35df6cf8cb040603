"""PyTorch's functions of the same names, and tensors of ours as PyTorch's, for laws that compare the two."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_testing import Sample
from rushlight_testing.operators import is_random, operators

torch = pytest.importorskip("torch")

# The modules of PyTorch for functions that are not torch.<name>.
MODULES = {"linalg_": torch.linalg, "special_": torch.special, "fft_": torch.fft}


def counterpart(op: Op) -> Any:
    """Return PyTorch's function of the same name, or None if there is no such function."""
    base, namespaces = op.base, [torch, torch._C._nn, torch.nn.functional]
    for prefix, module in MODULES.items():
        if base.startswith(prefix):
            base, namespaces = base.removeprefix(prefix), [module]
    if "function" not in op.variants:
        namespaces = [torch.Tensor]
    return next((getattr(namespace, base) for namespace in namespaces if hasattr(namespace, base)), None)


def to_torch(value: Any) -> Any:
    if isinstance(value, core.Tensor):
        name = str(value.dtype).rsplit(".", 1)[-1]
        wide = value.to(core.float64) if name in ("float16", "bfloat16") else value
        return torch.tensor(wide.numpy()).reshape(tuple(value.shape)).to(getattr(torch, name))
    if isinstance(value, core.dtype):
        return getattr(torch, str(value).rsplit(".", 1)[-1])
    if type(value) in (list, tuple):
        return type(value)(to_torch(v) for v in value)
    return value


def call_torch(op: Op, sample: Sample) -> Any:
    """Return what PyTorch's function returns for the arguments of a sample."""
    keywords = {name: to_torch(value) for name, value in sample.kwargs.items()}
    return counterpart(op)(*map(to_torch, sample.args), **keywords)


OPS = [
    op
    for op in operators()
    if op.samples and not is_random(op) and "hidden" not in op.variants and not op.base.startswith("_")
    and not op.is_inplace and counterpart(op) is not None
]  # fmt: skip
