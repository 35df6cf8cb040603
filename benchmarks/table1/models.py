"""The networks of Table 1, written for PyTorch with its public names only; rushlight runs this file unchanged.

AlexNet, VGG-19, ResNet-50, MobileNet, GNMTv2 and NCF are the paper's models; a GPT and a ViT-S are more recent.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# --- images ------------------------------------------------------------------------------------------------


class AlexNet(nn.Module):
    """The one-tower network of Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014)."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, stride=4, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2),
            nn.Conv2d(64, 192, 5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2),
            nn.Conv2d(192, 384, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2),
        )
        self.classifier = _classifier(256 * 6 * 6, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).flatten(1))


class VGG19(nn.Module):
    """Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition" (2015)."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for width, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
            for _ in range(count):
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.classifier = _classifier(512 * 7 * 7, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).flatten(1))


def _classifier(features: int, classes: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Dropout(),
        nn.Linear(features, 4096),
        nn.ReLU(inplace=True),
        nn.Dropout(),
        nn.Linear(4096, 4096),
        nn.ReLU(inplace=True),
        nn.Linear(4096, classes),
    )


class Bottleneck(nn.Module):
    """The residual block of ResNet-50 v1.5: the stride is in the 3x3 convolution."""

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        outside = 4 * width
        self.conv1 = nn.Conv2d(inside, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outside, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Sequential()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride=stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += self.shortcut(x)
        return self.relu(y)


class ResNet50(nn.Module):
    """He, Zhang, Ren and Sun, "Deep residual learning for image recognition" (2016), version 1.5."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        blocks: list[nn.Module] = []
        channels = 64
        for stage, count in enumerate((3, 4, 6, 3)):
            for block in range(count):
                blocks.append(Bottleneck(channels, 64 << stage, 2 if stage > 0 and block == 0 else 1))
                channels = 256 << stage
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.pool(self.blocks(self.stem(x))).flatten(1))


class InvertedResidual(nn.Module):
    """The block of MobileNetV2: widen by 1x1, filter each channel, narrow by 1x1."""

    def __init__(self, inside: int, outside: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = inside * expansion
        layers: list[nn.Module] = [] if expansion == 1 else [*_conv_norm_relu6(inside, width, 1)]
        layers += [
            *_conv_norm_relu6(width, width, 3, stride=stride, groups=width),
            nn.Conv2d(width, outside, 1, bias=False),
            nn.BatchNorm2d(outside),
        ]
        self.layers = nn.Sequential(*layers)
        self.residual = stride == 1 and inside == outside

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        return x + y if self.residual else y


class MobileNetV2(nn.Module):
    """Sandler and others, "MobileNetV2: Inverted residuals and linear bottlenecks" (2018)."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = [*_conv_norm_relu6(3, 32, 3, stride=2)]
        channels = 32
        for expansion, width, count, stride in (
            (1, 16, 1, 1),
            (6, 24, 2, 2),
            (6, 32, 3, 2),
            (6, 64, 4, 2),
            (6, 96, 3, 1),
            (6, 160, 3, 2),
            (6, 320, 1, 1),
        ):
            for block in range(count):
                layers.append(InvertedResidual(channels, width, stride if block == 0 else 1, expansion))
                channels = width
        self.features = nn.Sequential(*layers, *_conv_norm_relu6(channels, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


def _conv_norm_relu6(
    inside: int, outside: int, kernel: int, *, stride: int = 1, groups: int = 1
) -> tuple[nn.Module, ...]:
    return (
        nn.Conv2d(inside, outside, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outside),
        nn.ReLU6(inplace=True),
    )


# --- translation -------------------------------------------------------------------------------------------


class NormedAttention(nn.Module):
    """Additive attention of Bahdanau, Cho and Bengio (2015), with the normalised weights of Salimans and Kingma (2016)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(size, size, bias=False)
        self.key = nn.Linear(size, size, bias=False)
        self.direction = nn.Parameter(torch.empty(size).uniform_(-0.1, 0.1))
        self.scale = nn.Parameter(torch.tensor(size**-0.5))
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return contexts (batch, queries, size) of queries and keys (batch, length, size)."""
        q, k = self.query(queries), self.key(keys)
        sums = q.unsqueeze(2) + k.unsqueeze(1) + self.bias
        direction = self.direction * (self.scale / self.direction.norm())
        scores = torch.tanh(sums).matmul(direction)
        return torch.bmm(F.softmax(scores, dim=-1), keys)


class GNMT(nn.Module):
    """Wu and others, "Google's neural machine translation system" (2016), as GNMTv2: four layers in the encoder, of
    which the first runs in both directions, four in the decoder, attention from the decoder's first layer into the others.
    """

    def __init__(self, vocabulary: int, size: int, dropout: float = 0.2) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.source = nn.Embedding(vocabulary, size)
        self.target = nn.Embedding(vocabulary, size)
        self.both_ways = nn.LSTM(size, size, bidirectional=True, batch_first=True)
        self.encoder = nn.ModuleList(
            nn.LSTM(2 * size if i == 0 else size, size, batch_first=True) for i in range(3)
        )
        self.first = nn.LSTM(size, size, batch_first=True)
        self.attention = NormedAttention(size)
        self.decoder = nn.ModuleList(nn.LSTM(2 * size, size, batch_first=True) for _ in range(3))
        self.classifier = nn.Linear(size, vocabulary)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return logits (batch, length, vocabulary) of words (batch, length) in the two languages."""
        x, _ = self.both_ways(self.dropout(self.source(source)))
        for i, layer in enumerate(self.encoder):
            y, _ = layer(self.dropout(x))
            x = y if i == 0 else x + y
        y, _ = self.first(self.dropout(self.target(target)))
        context = self.attention(y, x)
        for i, layer in enumerate(self.decoder):
            z, _ = layer(torch.cat((self.dropout(y), context), dim=2))
            y = z if i == 0 else y + z
        return self.classifier(y)


# --- recommendation ----------------------------------------------------------------------------------------


class NeuMF(nn.Module):
    """He and others, "Neural collaborative filtering" (2017): matrix factorisation beside a network of dense layers."""

    def __init__(
        self, users: int, items: int, factors: int = 64, layers: tuple[int, ...] = (256, 256, 128, 64)
    ) -> None:
        super().__init__()
        self.user_factors = nn.Embedding(users, factors)
        self.item_factors = nn.Embedding(items, factors)
        self.user_features = nn.Embedding(users, layers[0] // 2)
        self.item_features = nn.Embedding(items, layers[0] // 2)
        self.layers = nn.Sequential()
        for inside, outside in itertools.pairwise(layers):
            self.layers.extend([nn.Linear(inside, outside), nn.ReLU(inplace=True)])
        self.predict = nn.Linear(factors + layers[-1], 1)

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        """Return logits (batch,) of pairs of a user and an item (batch,)."""
        product = self.user_factors(user) * self.item_factors(item)
        features = self.layers(torch.cat((self.user_features(user), self.item_features(item)), dim=1))
        return self.predict(torch.cat((product, features), dim=1)).squeeze(1)


# --- transformers ------------------------------------------------------------------------------------------


class Block(nn.Module):
    """A transformer block with normalisation before each part."""

    def __init__(self, size: int, heads: int, dropout: float, causal: bool) -> None:
        super().__init__()
        self.heads, self.p, self.causal = heads, dropout, causal
        self.norm1 = nn.LayerNorm(size)
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)
        self.norm2 = nn.LayerNorm(size)
        self.feed_forward = nn.Sequential(
            nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size), nn.Dropout(dropout)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, size = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, size // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        dropout = self.p if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=self.causal)
        x = x + self.dropout(self.out(y.transpose(1, 2).reshape(batch, length, size)))
        return x + self.feed_forward(self.norm2(x))


class GPT(nn.Module):
    """Radford and others, "Language models are unsupervised multitask learners" (2019), with tied embeddings."""

    def __init__(
        self, vocabulary: int, length: int, size: int, heads: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, size)
        self.positions = nn.Parameter(torch.zeros(length, size))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Block(size, heads, dropout, causal=True) for _ in range(layers)))
        self.norm = nn.LayerNorm(size)
        self.head = nn.Linear(size, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits (batch, length, vocabulary) of the words that follow `tokens` (batch, length)."""
        x = self.dropout(self.tokens(tokens) + self.positions[: tokens.shape[1]])
        return self.head(self.norm(self.blocks(x)))


class ViT(nn.Module):
    """Dosovitskiy and others, "An image is worth 16x16 words" (2021), without dropout, as ViT-S is trained today."""

    def __init__(
        self, image: int, patch: int, size: int, heads: int, layers: int, classes: int = 1000
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, size, patch, stride=patch)
        self.token = nn.Parameter(torch.zeros(1, 1, size))
        self.positions = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, size))
        self.blocks = nn.Sequential(*(Block(size, heads, 0.0, causal=False) for _ in range(layers)))
        self.norm = nn.LayerNorm(size)
        self.head = nn.Linear(size, classes)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(len(x), -1, -1), patches), dim=1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])
