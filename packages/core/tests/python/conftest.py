"""Restore the state of the process after every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rushlight_core as core


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    yield
    assert core.is_grad_enabled()
    assert not core.is_inference_mode_enabled()
    assert core.get_default_dtype() is core.float32
    core.set_printoptions(profile="default")
