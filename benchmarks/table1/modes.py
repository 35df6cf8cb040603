"""Who trains: libraries, each in the modes that its users would try."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mode:
    """A library with the switches of `trainer.SWITCHES` that are on."""

    library: str
    switches: str = "default"

    def __str__(self) -> str:
        return self.library if self.switches == "default" else f"{self.library} {self.switches}"


# Of rushlight the first is what the table promises: the model as it is written, without a switch.
IMAGES = (
    Mode("rushlight"),
    Mode("rushlight", "channels_last"),
    Mode("torch"),
    Mode("torch", "fused"),
    Mode("torch", "channels_last+fused"),
    Mode("torch", "channels_last+fused+compile"),
)
OTHERS = (
    Mode("rushlight"),
    Mode("torch"),
    Mode("torch", "fused"),
    Mode("torch", "fused+compile"),
)


def modes(images: bool, *, compiled: bool) -> tuple[Mode, ...]:
    """Those of a model; the compiled ones take minutes to warm up and are run on request."""
    chosen = IMAGES if images else OTHERS
    return chosen if compiled else tuple(mode for mode in chosen if "compile" not in mode.switches)
