"""Process-wide settings that may affect samples. Each worker has a copy of the settings, made when the worker started."""

from __future__ import annotations

import os
import sys
from typing import Any

import rushlight_core as core


def process_settings() -> list[Any]:
    """Return the working directory, environment variables, and settings of `rushlight_core` and `decimal`."""
    settings = [
        _working_directory(), dict(os.environ),
        core.get_default_dtype(), core.get_default_device(), core.random_stream(),
    ]  # fmt: skip
    decimal = sys.modules.get("decimal")
    if decimal is not None:
        context = decimal.getcontext()
        # Flags are not compared: they record earlier results and do not affect later ones.
        settings += (
            context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp,
            dict(context.traps),
        )  # fmt: skip
    return settings


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:  # the directory has been deleted
        return None
