"""The workloads of Table 1: model, batch and loss, with PyTorch's public names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import models

USERS, ITEMS = 138_493, 26_744  # of MovieLens-20M

Batch = tuple[Tensor, ...]
Loss = Callable[[nn.Module, Batch], Tensor]


@dataclass(frozen=True)
class Workload:
    """build: creates the model. batch: creates the inputs of a step for a batch size. loss: computes the loss on them."""

    build: Callable[[], nn.Module]
    batch: Callable[[int], Batch]
    loss: Loss


def _images(size: int) -> Batch:
    return torch.randn(size, 3, 224, 224), torch.randint(1000, (size,))


def _sentences(vocabulary: int, length: int, count: int) -> Callable[[int], Batch]:
    return lambda size: tuple(torch.randint(vocabulary, (size, length)) for _ in range(count))


def _ratings(size: int) -> Batch:
    return torch.randint(USERS, (size,)), torch.randint(ITEMS, (size,)), torch.randint(2, (size,)).float()


def _classify(model: nn.Module, batch: Batch) -> Tensor:
    images, labels = batch
    return F.cross_entropy(model(images), labels)


def _translate(model: nn.Module, batch: Batch) -> Tensor:
    source, target, following = batch
    return F.cross_entropy(model(source, target).flatten(0, 1), following.flatten(), label_smoothing=0.1)


def _predict(model: nn.Module, batch: Batch) -> Tensor:
    tokens, following = batch
    return F.cross_entropy(model(tokens).flatten(0, 1), following.flatten())


def _rate(model: nn.Module, batch: Batch) -> Tensor:
    user, item, liked = batch
    return F.binary_cross_entropy_with_logits(model(user, item), liked)


def _vision(build: Callable[[], nn.Module]) -> Workload:
    return Workload(build, _images, _classify)


def _gnmt(hidden: int) -> Workload:
    return Workload(lambda: models.GNMT(8000, hidden), _sentences(8000, 32, 3), _translate)


# By the names of catalogue.ENTRIES.
WORKLOADS: dict[str, Workload] = {
    "alexnet": _vision(models.AlexNet),
    "vgg19": _vision(models.VGG19),
    "resnet50": _vision(models.ResNet50),
    "resnet50-16": _vision(models.ResNet50),
    "mobilenetv2": _vision(models.MobileNetV2),
    "gnmt": _gnmt(512),
    "gnmt-1024": _gnmt(1024),
    "ncf": Workload(lambda: models.NeuMF(USERS, ITEMS), _ratings, _rate),
    "gpt": Workload(
        lambda: models.GPT(4096, 256, 384, heads=6, layers=6, dropout=0.1),
        _sentences(4096, 256, 2),
        _predict,
    ),
    "vit-s": _vision(lambda: models.ViT(224, 16, 384, heads=6, layers=12)),
}
