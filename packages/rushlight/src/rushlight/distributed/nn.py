"""Differentiable collectives, as in `torch.distributed.nn`. They are not supported: calls raise RuntimeError."""

from __future__ import annotations

from typing import Any, NoReturn


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'rushlight.distributed.nn' has no attribute {name!r}")

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"distributed.nn.{name}(): gradients do not flow through collectives\n"
            "hint: use DistributedDataParallel to average gradients, or the collectives of torch.distributed"
        )

    return refuse
