"""The older name `load_url` of `rushlight.hub.load_state_dict_from_url`, which downloads a file of weights."""

from typing import Any

from rushlight.hub import load_state_dict_from_url

__all__ = ["load_url"]

load_url = load_state_dict_from_url


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # programs import the progress bar of the package tqdm from here
        from importlib import import_module

        return import_module("tqdm").tqdm
    raise AttributeError(f"module 'rushlight.utils.model_zoo' has no attribute {name!r}")
