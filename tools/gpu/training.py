"""Train a network on the GPU: the first loss must be the CPU's, the losses must fall, and no memory may be allocated late.

    PYTHONPATH=tools:. python -m gpu.training resnet50|gpt|digits [--tiny]

After the second step, no step may allocate memory of the device (cudaMalloc). `--tiny` trains small networks of the same
layers for a few steps, for a plug-in that emulates a device in host memory.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from gpu import plugin

# A network, a function that draws a batch, and a function that computes the loss.
Task = tuple[Any, Callable[[], tuple[Any, Any]], Callable[[Any, Any, Any], Any]]


def resnet50(torch: Any, tiny: bool) -> Task:
    """ResNet-50 on random images with random labels, which it learns by heart."""
    from benchmarks.table1 import models

    nn = torch.nn
    if tiny:
        net = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            models.Bottleneck(8, 4, 1), models.Bottleneck(16, 4, 2),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4),
        )  # fmt: skip
    else:
        net = models.ResNet50(classes=16)
    count, size = (4, 8) if tiny else (32, 224)
    images, labels = torch.randn(count, 3, size, size), torch.arange(count) % (4 if tiny else 16)
    return net, lambda: (images, labels), classified


def gpt(torch: Any, tiny: bool) -> Task:
    """A GPT on sequences in which every token is the sum of the two tokens before it."""
    from benchmarks.table1 import models

    vocabulary, length, count = (7, 6, 4) if tiny else (64, 128, 32)
    net = models.GPT(vocabulary, length, *((8, 2, 1, 0.0) if tiny else (256, 8, 4, 0.0)))

    def batch() -> tuple[Any, Any]:
        tokens = [torch.randint(vocabulary, (count,)), torch.randint(vocabulary, (count,))]
        while len(tokens) <= length:
            tokens.append((tokens[-1] + tokens[-2]) % vocabulary)
        all_tokens = torch.stack(tokens, 1)
        return all_tokens[:, :-1], all_tokens[:, 1:]

    def loss(net: Any, tokens: Any, following: Any) -> Any:
        return torch.nn.functional.cross_entropy(net(tokens).flatten(0, 1), following.flatten())

    return net, batch, loss


def digits(torch: Any, tiny: bool) -> Task:
    """A convolutional network on scikit-learn's handwritten digits."""
    from sklearn.datasets import load_digits

    data, target = load_digits(return_X_y=True)
    images = torch.from_numpy((data / 16).astype("float32")).reshape(-1, 1, 8, 8)
    labels = torch.from_numpy(target)
    nn, count, filters = torch.nn, 16 if tiny else 128, 4 if tiny else 128
    net = nn.Sequential(nn.Conv2d(1, filters, 3), nn.ReLU(), nn.Flatten(), nn.Linear(36 * filters, 10))

    def batch() -> tuple[Any, Any]:
        chosen = torch.randperm(len(labels))[:count]
        return images[chosen], labels[chosen]

    return net, batch, classified


def classified(net: Any, images: Any, labels: Any) -> Any:
    import rushlight as torch

    return torch.nn.functional.cross_entropy(net(images), labels)


TASKS: dict[str, tuple[Callable[[Any, bool], Task], int]] = {  # and the number of steps
    "resnet50": (resnet50, 30),
    "gpt": (gpt, 200),
    "digits": (digits, 300),
}
TINY_STEPS = 6


def train(name: str, tiny: bool) -> str:
    """Train, check, and return a line about the run."""
    import rushlight as torch

    make, steps = TASKS[name]
    steps = TINY_STEPS if tiny else steps
    torch.manual_seed(0)
    net, batch, compute = make(torch, tiny)
    first = [t.clone() for t in batch()]
    expected = compute(net, *first).item()
    net.cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2 if tiny else 1e-3, fused=True)
    losses, allocated = [], []
    for step in range(steps):
        inputs = first if step == 0 else batch()
        optimizer.zero_grad()
        loss = compute(net, *(t.cuda() for t in inputs))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        allocated.append(torch.cuda.memory_stats()["num_device_alloc"])
        if step == 1:
            torch.cuda.synchronize()
            began = time.perf_counter()
    torch.cuda.synchronize()
    per_step = (time.perf_counter() - began) / (steps - 2)
    found = [loss.item() for loss in losses]
    late = allocated[-1] - allocated[1]
    assert abs(found[0] - expected) <= 0.02 * abs(expected), (
        f"the first loss is {found[0]}, the CPU's {expected}"
    )
    # Batches differ, so the means of several steps are compared.
    window = max(1, steps // 10)
    begin, end = sum(found[:window]) / window, sum(found[-window:]) / window
    assert end < (0.99 if tiny else 0.5) * begin, f"the loss went from {begin} to {end}"
    assert late == 0, f"{late} allocations of device memory after the second step"
    return (
        f"{name}: {steps} steps, loss from {begin:.4f} to {end:.4f}, {1e3 * per_step:.2f} ms per step,"
        f" {allocated[1]} allocations of device memory in the first two steps and {late} later"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    plugin.add_option(parser)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--tiny", action="store_true", help="train a small network for a few steps")
    given = parser.parse_args()
    # The models import the name torch, which must be rushlight even if PyTorch is installed.
    from rushlight import as_torch

    as_torch.install()
    plugin.attach(given.plugin)
    print(train(given.task, given.tiny))
    return 0


if __name__ == "__main__":
    sys.exit(main())
