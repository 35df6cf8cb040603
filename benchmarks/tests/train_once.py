"""A process for test_table1_against_torch.py: one training step of every model, in a given library and float64."""

from __future__ import annotations

import json
import sys

import numpy as np

# Images of one sample, sentences and ratings of few.
SIZES = {
    "alexnet": 2,
    "vgg19": 1,
    "resnet50": 2,
    "mobilenetv2": 2,
    "gnmt": 2,
    "ncf": 64,
    "gpt": 1,
    "vit-s": 1,
}


def main(library: str) -> None:
    if library == "rushlight":
        import rushlight.as_torch

        rushlight.as_torch.install()
    import torch

    from benchmarks.table1.workloads import WORKLOADS

    found = {}
    for name, size in SIZES.items():
        workload = WORKLOADS[name]
        model = workload.build().double()
        rng = np.random.default_rng(0)
        with torch.no_grad():
            for parameter in model.parameters():
                shape = tuple(parameter.shape)
                fan = max(1, parameter.numel() // (shape[0] if shape else 1))
                parameter.copy_(torch.from_numpy(np.asarray(rng.standard_normal(shape) * fan**-0.5)))
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            if hasattr(module, "causal"):  # a block, whose attention drops by itself
                module.p = 0.0
        batch = []
        for tensor in workload.batch(size):
            shape = tuple(tensor.shape)
            values = rng.random(shape) if tensor.is_floating_point() else rng.integers(0, 1000, shape)
            batch.append(torch.from_numpy(values))
        loss = workload.loss(model, tuple(batch))
        loss.backward()
        norms = [float(p.grad.norm()) for p in model.parameters() if p.grad is not None]
        found[name] = {"loss": float(loss.item()), "norms": norms}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
