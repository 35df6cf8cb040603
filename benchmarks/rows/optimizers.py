"""Optimizer steps over the parameters of a network, compared with a copy that moves as many bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from . import Row

BYTES_PER_ELEMENT = 4


@dataclass(frozen=True)
class Step:
    """An optimizer. reads, writes: the number of arrays of the parameters' size that one step reads and writes."""

    name: str
    arguments: str
    reads: int
    writes: int


# A step reads a parameter, its gradient and its momentum or two moments, and writes all except the gradient.
STEPS = (
    Step("SGD", "lr=1e-3, momentum=0.9", reads=3, writes=2),
    Step("Adam", "lr=1e-3", reads=4, writes=3),
    Step("AdamW", "lr=1e-3", reads=4, writes=3),
)


def resnet50_shapes() -> list[tuple[int, ...]]:
    """Return the shapes of the parameters of ResNet-50 (He et al. 2016) for 1000 classes: 25.6 million elements."""
    shapes: list[tuple[int, ...]] = [(64, 3, 7, 7), (64,), (64,)]
    inside = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(count):
            convolutions = [(width, inside, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)]
            convolutions += [(4 * width, inside, 1, 1)] if block == 0 else []
            for shape in convolutions:
                shapes += [shape, shape[:1], shape[:1]]
            inside = 4 * width
    return [*shapes, (1000, inside), (1000,)]


def elements() -> int:
    """Return the number of ResNet-50's parameters."""
    return sum(math.prod(shape) for shape in resnet50_shapes())


def moved_bytes(step: Step) -> int:
    """Return the bytes that one step reads and writes at least, without caches."""
    return (step.reads + step.writes) * elements() * BYTES_PER_ELEMENT


def rows(threads: int) -> list[Row]:
    """Return one row per optimizer. NumPy's threads copy as many bytes as the step reads and writes."""
    operands = (
        f"shapes = {resnet50_shapes()}\n"
        "p = [torch.tensor(data(*shape, seed=i), requires_grad=True) for i, shape in enumerate(shapes)]\n"
        "for i, q in enumerate(p): q.grad = torch.tensor(data(*q.shape, seed=i + 1000))\n"
    )
    return [
        Row(
            step.name,
            "optimizer.step()",
            operands + f"optimizer = torch.optim.{step.name}(p, {step.arguments})\n",
            peer_setup=operands + f"optimizer = torch.optim.{step.name}(p, {step.arguments}, fused=True)\n",
            result="[optimizer.step(), p]",
            numpy="copy()",
            numpy_setup=_copy(moved_bytes(step) // 2, threads),
        )
        for step in STEPS
    ]


def _copy(nbytes: int, threads: int) -> str:
    parts = f"np.array_split(np.ones({nbytes // BYTES_PER_ELEMENT}, np.float32), {threads})"
    setup = f"sources, targets = {parts}, {parts}\n"
    if threads == 1:
        return setup + "def copy(): np.copyto(targets[0], sources[0])\n"
    return (
        "from concurrent.futures import ThreadPoolExecutor\n"
        f"{setup}pool = ThreadPoolExecutor({threads - 1})\n"
        "def copy():\n"
        "    others = [pool.submit(np.copyto, t, s) for t, s in zip(targets[1:], sources[1:])]\n"
        "    np.copyto(targets[0], sources[0])\n"
        "    for other in others: other.result()\n"
    )
