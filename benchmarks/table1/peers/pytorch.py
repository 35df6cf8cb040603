"""Training with rushlight and with PyTorch, from the same file of models. Its `torch` is the requested library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..catalogue import ENTRIES
from ..protocol import Request
from ..weights import read

# The last three are for `benchmarks.ablations`: without minimal filtering, without oneDNN, and with an optimizer that is
# written with operators.
SWITCHES = ("channels_last", "fused", "compile", "direct", "plain", "operators")


def prepare(request: Request) -> Callable[[], float]:
    if request.library == "rushlight":
        import rushlight.as_torch

        rushlight.as_torch.install()
    import torch

    from ..workloads import WORKLOADS

    switches = request.switches()
    torch.set_num_threads(request.threads)
    if "direct" in switches:
        torch.backends.cpu.winograd = False
    if "plain" in switches:
        torch.backends.mkldnn.enabled = False
    torch.manual_seed(0)
    entry, workload = ENTRIES[request.workload], WORKLOADS[request.workload]
    model = workload.build()
    weights, arrays = read(request.start, request.samples)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(weights.pop(name)))
    if weights:
        raise ValueError(f"the model has no weights of these names: {', '.join(weights)}")
    batch = tuple(torch.from_numpy(array) for array in arrays)
    if not request.dropout:
        for module in model.modules():
            # A transformer's block has the probability for its attention.
            if isinstance(module, torch.nn.Dropout) or hasattr(module, "causal"):
                module.p = 0.0
    if "channels_last" in switches:
        if not entry.images:
            raise ValueError(f"mode {request.mode!r}: {request.workload} has no images")
        model = model.to(memory_format=torch.channels_last)
        batch = (batch[0].to(memory_format=torch.channels_last), *batch[1:])
    fused = {"fused": True} if "fused" in switches else {}
    if "operators" in switches:
        optimizer = _Operators(entry.optimizer, entry.rate, list(model.parameters()))
    elif entry.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=entry.rate, momentum=0.9, **fused)
    else:
        kind = torch.optim.AdamW if entry.optimizer == "adamw" else torch.optim.Adam
        optimizer = kind(model.parameters(), lr=entry.rate, **fused)
    called = torch.compile(model) if "compile" in switches else model

    def step() -> float:
        optimizer.zero_grad()
        loss = workload.loss(called, batch)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


class _Operators:
    """SGD with momentum 0.9, Adam or AdamW, with one operator call per arithmetic step and parameter."""

    def __init__(self, kind: str, rate: float, parameters: list[Any]) -> None:
        import torch

        self._kind, self._rate, self._parameters, self._count = kind, rate, parameters, 0
        self._moments = [[torch.zeros_like(p) for p in parameters] for _ in range(1 if kind == "sgd" else 2)]
        self._no_grad = torch.no_grad

    def zero_grad(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    def step(self) -> None:
        self._count += 1
        with self._no_grad():
            for parameter, *moments in zip(self._parameters, *self._moments, strict=True):
                self._update(parameter, parameter.grad, *moments)

    def _update(self, parameter: Any, slope: Any, first: Any, second: Any = None) -> None:
        if second is None:
            first.mul_(0.9).add_(slope)
            parameter.add_(first, alpha=-self._rate)
            return
        if self._kind == "adamw":
            parameter.mul_(1 - self._rate * 0.01)
        first.mul_(0.9).add_(slope, alpha=0.1)
        second.mul_(0.999).addcmul_(slope, slope, value=0.001)
        roots = second.sqrt().div_((1 - 0.999**self._count) ** 0.5).add_(1e-8)
        parameter.addcdiv_(first, roots, value=-self._rate / (1 - 0.9**self._count))
