"""The option that the programs for a GPU share."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plugin", type=Path, help="a plug-in that serves cuda and is not a package")


def attach(plugin: Path | None) -> None:
    """Load the plug-in that is given. Core finds an installed one by itself."""
    if plugin:
        from rushlight_core import devices

        devices.load_backend(plugin)
