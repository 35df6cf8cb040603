"""Training steps that are recorded as a device graph, on the toy device.

The tests read the output of this file, which runs in a separate process, because a device stays attached to its
process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import optim
from rushlight.nn import LayerNorm, Linear, ReLU, Sequential
from rushlight.nn.functional import cross_entropy
from rushlight_core import devices
from rushlight_core._graphs import Capture, Graph

TOY = "toy:1"

RECORDED = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda p: optim.Adam(p, lr=0.01, capturable=True),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01, amsgrad=True),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01, centered=True, momentum=0.5),
    "Adadelta": lambda p: optim.Adadelta(p, lr=0.5),
    "NAdam": lambda p: optim.NAdam(p, lr=0.01, capturable=True),
    "RAdam": lambda p: optim.RAdam(p, lr=0.01, betas=(0.8, 0.9)),
    "Adamax": lambda p: optim.Adamax(p, lr=0.01),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.5),
    "Rprop": lambda p: optim.Rprop(p),
    "ASGD": lambda p: optim.ASGD(p, lr=0.1, lambd=0.1, t0=1),
    "Muon": lambda p: optim.Muon([w for w in p if w.dim() == 2], lr=0.01),
}
REFUSED = ["Adafactor"]


def train(make_optimizer: Any, batches: list[Any], recorded: bool) -> list[Any]:
    """Return the losses and the final parameters. The first step, which creates the state, is never recorded."""
    torch.manual_seed(0)
    model = Sequential(Linear(8, 16), LayerNorm(16), ReLU(), Linear(16, 3)).to(TOY)
    optimizer = make_optimizer(model.parameters())
    inputs, targets = torch.zeros(4, 8, device=TOY), torch.zeros(4, dtype=torch.int64, device=TOY)

    def step() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    graph = Graph(TOY)
    for number, (x, y) in enumerate(batches):
        inputs.copy_(x)
        targets.copy_(y)
        if recorded and number == 1:
            with Capture(graph):
                loss = step()
        if recorded and number > 0:
            graph.replay()
        else:
            loss = step()
        losses.append(loss.item())
    return [losses, [p.tolist() for p in model.parameters()]]


def refusal(kind: str) -> list[Any]:
    """Return the error, and whether the parameter and the step count are unchanged."""
    param = torch.ones(2, 2, device=TOY, requires_grad=True)
    optimizer = getattr(optim, kind)([param])
    param.grad = torch.ones_like(param)
    optimizer.step()
    before = param.tolist()
    try:
        with Capture(Graph(TOY)):
            optimizer.step()
    except RuntimeError as error:
        return [str(error), param.tolist() == before and float(optimizer.state[param]["step"]) == 1]
    return ["", False]


def main() -> None:
    devices.load_backend(sys.argv[1])
    batches = [(torch.randn(4, 8), torch.randint(0, 3, (4,))) for _ in range(6)]
    trained = {
        name: [train(make, batches, flag) for flag in (True, False)] for name, make in RECORDED.items()
    }
    print(json.dumps({"trained": trained, "refused": {kind: refusal(kind) for kind in REFUSED}}))


@pytest.fixture(scope="module")
def seen(toy_device: Path) -> dict[str, Any]:
    """Return the output of `main`."""
    done = subprocess.run(
        [sys.executable, __file__, str(toy_device)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("optimizer", RECORDED)
def test_a_recorded_training_step_is_the_same_step(seen: dict[str, Any], optimizer: str) -> None:
    recorded, expected = seen["trained"][optimizer]
    losses, parameters = recorded
    assert len(set(losses)) == len(losses) == 6
    assert [losses, parameters] == expected


@pytest.mark.parametrize("optimizer", REFUSED)
def test_steps_that_are_counted_on_the_cpu_are_refused(seen: dict[str, Any], optimizer: str) -> None:
    said, untouched = seen["refused"][optimizer]
    assert f"{optimizer}.step(): cannot be recorded in a graph" in said
    assert untouched


if __name__ == "__main__":
    main()
