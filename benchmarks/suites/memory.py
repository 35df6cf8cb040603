"""memory: the peak resident memory of training networks, in fresh processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import process, stats
from ..environment import confined
from ..library import Library
from ..options import Options
from ..report import number, table

_CONVNET = """
nn, F = torch.nn, torch.nn.functional
model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
                      nn.MaxPool2d(2), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                      nn.Flatten(), nn.Linear(64 * 8 * 8, 10))
fill(model)
x = torch.tensor(data(64, 3, 32, 32))
target = torch.arange(64) % 10
"""

# He, Zhang, Ren and Sun (2016), with the stride in the 3x3 convolution.
_RESNET50 = """
nn, F = torch.nn, torch.nn.functional
class Bottleneck(nn.Module):
    def __init__(self, inside, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Sequential()
        if stride != 1 or inside != 4 * width:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, 4 * width, 1, stride=stride, bias=False),
                                          nn.BatchNorm2d(4 * width))
    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))
def resnet50():
    layers = [nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, stride=2, padding=1)]
    inside = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for block in range(count):
            layers.append(Bottleneck(inside, 64 << stage, 2 if stage and block == 0 else 1))
            inside = 4 * (64 << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000))
model = resnet50()
fill(model)
x = torch.tensor(data(4, 3, 224, 224))
target = torch.arange(4) * 100
"""

# The decoder of Radford et al. (2019), six layers of it.
_GPT = """
nn, F = torch.nn, torch.nn.functional
class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (p.view(n, t, self.heads, c // self.heads).transpose(1, 2)
                   for p in self.attend(self.norm1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(n, t, c))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x))))
class GPT(nn.Module):
    def __init__(self, words=4096, context=256, width=384, heads=6, layers=6):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
    def forward(self, tokens):
        x = self.words(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x))).flatten(0, 1)
model = GPT()
fill(model)
x = torch.arange(8 * 256).view(8, 256) * 7 % 4096
target = (x.flatten() + 7) % 4096
"""

_STEP = """
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
def step():
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), target)
    loss.backward()
    optimizer.step()
    return loss.item()
"""


@dataclass(frozen=True)
class Network:
    """A network to train. The setup creates `model`, `x` and `target`."""

    name: str
    setup: str
    steps: int


NETWORKS = (
    Network("a small convolutional network", _CONVNET, 10),
    Network("ResNet-50, batch of 4", _RESNET50, 3),
    Network("GPT of 6 layers, 8 x 256 tokens", _GPT, 3),
)
_QUANTITIES = ("imported_mb", "peak_mb", "step_mb")


def run(options: Options) -> dict[str, Any]:
    """Return the megabytes after the import, at the peak of the training, and the difference. Processes alternate."""
    chosen = [network for network in NETWORKS if options.match in network.name]
    if not chosen:
        raise ValueError(f"no network's name contains {options.match!r}")
    repeats = 2 if options.quick else 5
    threads = options.threads[0]
    runs = []
    for network in chosen:
        found: dict[str, list[dict[str, float]]] = {"subject": [], "peer": []}
        with confined(threads, options.cpu_list()):
            for _ in range(repeats):
                for key, module in (("subject", options.module), ("peer", options.peer)):
                    found[key].append(process.fresh(measure, module, threads, network))
        runs.append(_compared(network, found))
    return {
        "suite": "memory",
        "module": options.module,
        "peer": options.peer,
        "threads": threads,
        "runs": runs,
    }


def _compared(network: Network, found: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    pairs = list(zip(found["subject"], found["peer"], strict=True))
    differences = [abs(ours["loss"] - theirs["loss"]) / max(abs(theirs["loss"]), 1) for ours, theirs in pairs]
    result: dict[str, Any] = {"network": network.name}
    # Normalisation over four images amplifies rounding, hence the tolerance. NaN counts as a disagreement.
    if not max(differences) <= 5e-3:
        return result | {
            "problem": f"the losses after {network.steps} steps differ by {max(differences):.3g}"
        }
    for quantity in _QUANTITIES:
        ours, theirs = ([entry[quantity] for entry in found[key]] for key in ("subject", "peer"))
        result[quantity] = {
            "subject": stats.summarize(ours).as_dict(),
            "peer": stats.summarize(theirs).as_dict(),
            "ratio": stats.median_ratio(stats.ratios(ours, theirs)).as_dict(),
        }
    return result


def measure(send: process.Send, module: str, threads: int, network: Network) -> None:
    """Run in the fresh process. The peak is the kernel's high-water mark of this process image.

    The maximum of getrusage is not usable, because it includes the size of the forked parent.
    """
    library = Library(module, threads)
    imported = _status("VmRSS")
    scope = library.namespace(network.setup + _STEP)
    loss = 0.0
    for _ in range(network.steps):
        loss = scope["step"]()
    peak = _status("VmHWM")
    send({"imported_mb": imported, "peak_mb": peak, "step_mb": peak - imported, "loss": loss})


def _status(field: str) -> float:
    """Return a field of this process's status, in megabytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024 / 1e6
    raise RuntimeError(f"/proc/self/status has no {field}")


def render(result: dict[str, Any]) -> str:
    """Return a table with one row per network and quantity."""
    labels = {
        "imported_mb": "after the import",
        "step_mb": "added by model and training steps",
        "peak_mb": "peak of the process",
    }
    texts = [f"memory: {result['threads']} thread(s)"]
    for run in result["runs"]:
        if "problem" in run:
            texts.append(f"{run['network']}: {run['problem']}")
            continue
        body = [
            [
                label,
                f"{run[key]['subject']['median']:.1f} MB",
                f"{run[key]['peer']['median']:.1f} MB",
                number(run[key]["ratio"]["value"]),
            ]
            for key, label in labels.items()
        ]
        texts.append(table([run["network"], result["module"], result["peer"], "ratio"], body))
    return "\n\n".join(texts)
