"""The networks of `models.py` and their losses, as functions of a library's operations.

Each takes operations and the batch's tensors, and returns the loss. The sources of the networks are named in `models.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from .operations import Operations, Tensor

Network = Callable[..., Tensor]


def alexnet(ops: Operations, x: Tensor, labels: Tensor) -> Tensor:
    x = ops.relu(ops.conv(x, "features.0", stride=4, padding=2))
    x = ops.max_pool(x, 3, 2)
    x = ops.relu(ops.conv(x, "features.3", padding=2))
    x = ops.max_pool(x, 3, 2)
    for i in (6, 8, 10):
        x = ops.relu(ops.conv(x, f"features.{i}", padding=1))
    return _classify(ops, ops.max_pool(x, 3, 2), labels)


def vgg19(ops: Operations, x: Tensor, labels: Tensor) -> Tensor:
    index = 0
    for count in (2, 2, 4, 4, 4):
        for _ in range(count):
            x = ops.relu(ops.conv(x, f"features.{index}", padding=1))
            index += 2
        x = ops.max_pool(x, 2, 2)
        index += 1
    return _classify(ops, x, labels)


def _classify(ops: Operations, x: Tensor, labels: Tensor) -> Tensor:
    x = ops.dropout(ops.flatten(x), 0.5)
    x = ops.dropout(ops.relu(ops.linear(x, "classifier.1")), 0.5)
    x = ops.relu(ops.linear(x, "classifier.4"))
    return ops.cross_entropy(ops.linear(x, "classifier.6"), labels)


def resnet50(ops: Operations, x: Tensor, labels: Tensor) -> Tensor:
    x = ops.relu(ops.batch_norm(ops.conv(x, "stem.0", stride=2, padding=3), "stem.1"))
    x = ops.max_pool(x, 3, 2, padding=1)
    number = 0
    for stage, count in enumerate((3, 4, 6, 3)):
        for block in range(count):
            x = _bottleneck(ops, x, f"blocks.{number}", 2 if stage > 0 and block == 0 else 1, block == 0)
            number += 1
    return ops.cross_entropy(ops.linear(ops.average(x), "classifier"), labels)


def _bottleneck(ops: Operations, x: Tensor, name: str, stride: int, widens: bool) -> Tensor:
    y = ops.relu(ops.batch_norm(ops.conv(x, f"{name}.conv1"), f"{name}.bn1"))
    y = ops.relu(ops.batch_norm(ops.conv(y, f"{name}.conv2", stride=stride, padding=1), f"{name}.bn2"))
    y = ops.batch_norm(ops.conv(y, f"{name}.conv3"), f"{name}.bn3")
    if widens:
        x = ops.batch_norm(ops.conv(x, f"{name}.shortcut.0", stride=stride), f"{name}.shortcut.1")
    return ops.relu(y + x)


def mobilenetv2(ops: Operations, x: Tensor, labels: Tensor) -> Tensor:
    def block(x: Tensor, name: str, at: int, stride: int = 1, kernel: int = 1, groups: int = 1) -> Tensor:
        x = ops.conv(x, f"{name}.{at}", stride=stride, padding=kernel // 2, groups=groups)
        return ops.relu6(ops.batch_norm(x, f"{name}.{at + 1}"))

    x = block(x, "features", 0, stride=2, kernel=3)
    channels, number = 32, 3
    for expansion, width, count, first in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for i in range(count):
            name, stride, at = f"features.{number}.layers", first if i == 0 else 1, 0
            y = x
            if expansion > 1:
                y, at = block(y, name, 0), 3
            y = block(y, name, at, stride=stride, kernel=3, groups=channels * expansion)
            y = ops.batch_norm(ops.conv(y, f"{name}.{at + 3}"), f"{name}.{at + 4}")
            x = x + y if stride == 1 and channels == width else y
            channels, number = width, number + 1
    x = ops.average(block(x, "features", number))
    return ops.cross_entropy(ops.linear(ops.dropout(x, 0.2), "classifier.1"), labels)


def gnmt(ops: Operations, source: Tensor, target: Tensor, following: Tensor) -> Tensor:
    x = ops.lstm(ops.dropout(ops.embedding(source, "source"), 0.2), "both_ways", bidirectional=True)
    for i in range(3):
        y = ops.lstm(ops.dropout(x, 0.2), f"encoder.{i}")
        x = y if i == 0 else x + y
    y = ops.lstm(ops.dropout(ops.embedding(target, "target"), 0.2), "first")
    context = ops.normed_attention(y, x, "attention")
    for i in range(3):
        z = ops.lstm(ops.concat((ops.dropout(y, 0.2), context)), f"decoder.{i}")
        y = z if i == 0 else y + z
    return ops.cross_entropy(ops.linear(y, "classifier"), following, smoothing=0.1)


def ncf(ops: Operations, user: Tensor, item: Tensor, liked: Tensor) -> Tensor:
    product = ops.embedding(user, "user_factors") * ops.embedding(item, "item_factors")
    x = ops.concat((ops.embedding(user, "user_features"), ops.embedding(item, "item_features")))
    for i in (0, 2, 4):
        x = ops.relu(ops.linear(x, f"layers.{i}"))
    return ops.binary_cross_entropy(ops.linear(ops.concat((product, x)), "predict"), liked)


def gpt(ops: Operations, tokens: Tensor, following: Tensor) -> Tensor:
    x = ops.dropout(ops.shift(ops.embedding(tokens, "tokens"), "positions"), 0.1)
    for i in range(6):
        x = _transform(ops, x, f"blocks.{i}", 6, causal=True, p=0.1)
    return ops.cross_entropy(ops.logits_by_embedding(ops.layer_norm(x, "norm"), "tokens"), following)


def vit_s(ops: Operations, x: Tensor, labels: Tensor) -> Tensor:
    x = ops.rows(ops.conv(x, "patches", stride=16))
    x = ops.shift(ops.prepend(x, "token"), "positions")
    for i in range(12):
        x = _transform(ops, x, f"blocks.{i}", 6, causal=False, p=0.0)
    return ops.cross_entropy(ops.linear(ops.first(ops.layer_norm(x, "norm")), "head"), labels)


def _transform(ops: Operations, x: Tensor, name: str, heads: int, causal: bool, p: float) -> Tensor:
    y = ops.linear(ops.layer_norm(x, f"{name}.norm1"), f"{name}.qkv")
    y = ops.linear(ops.self_attention(y, heads, causal, p), f"{name}.out")
    x = x + ops.dropout(y, p)
    y = ops.gelu(ops.linear(ops.layer_norm(x, f"{name}.norm2"), f"{name}.feed_forward.0"))
    return x + ops.dropout(ops.linear(y, f"{name}.feed_forward.2"), p)


# By the names of catalogue.ENTRIES.
NETWORKS: dict[str, Network] = {
    "alexnet": alexnet,
    "vgg19": vgg19,
    "resnet50": resnet50,
    "resnet50-16": resnet50,
    "mobilenetv2": mobilenetv2,
    "gnmt": gnmt,
    "gnmt-1024": gnmt,
    "ncf": ncf,
    "gpt": gpt,
    "vit-s": vit_s,
}
