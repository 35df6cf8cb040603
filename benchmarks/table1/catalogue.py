"""The rows of Table 1: the properties of the models that are known without a library."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """size: samples in a batch. unit, units: the unit of the speed, and the number of units in a sample; for GNMT the tokens
    of both languages. optimizer: "sgd" (momentum 0.9), "adam" or "adamw". images: whether inputs are images, which may be
    channels_last. paper: whether the row is in the paper's table. checked: the number of samples on which the libraries'
    losses are compared.
    """

    title: str
    size: int
    unit: str
    units: int = 1
    optimizer: str = "sgd"
    images: bool = False
    paper: bool = True
    checked: int = 2

    @property
    def rate(self) -> float:
        """The learning rate."""
        return 1e-3 if self.optimizer == "sgd" else 1e-4


ENTRIES: dict[str, Entry] = {
    "alexnet": Entry("AlexNet", 16, "images", images=True),
    "vgg19": Entry("VGG-19", 4, "images", images=True),
    "resnet50": Entry("ResNet-50", 8, "images", images=True),
    "resnet50-16": Entry("ResNet-50, batch 16", 16, "images", images=True),
    "mobilenetv2": Entry("MobileNetV2", 16, "images", images=True),
    "gnmt": Entry("GNMTv2, 512", 32, "tokens", 64, "adam"),
    "gnmt-1024": Entry("GNMTv2, 1024", 32, "tokens", 64, "adam"),
    "ncf": Entry("NCF", 16384, "samples", optimizer="adam", checked=256),
    "gpt": Entry("GPT, 6 layers", 8, "tokens", 256, "adamw", paper=False),
    "vit-s": Entry("ViT-S", 8, "images", optimizer="adamw", images=True, paper=False),
}
