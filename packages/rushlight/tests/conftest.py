from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rushlight_testing.native import compile_plugin

sys.path.insert(0, str(Path(__file__).parent))  # for random_stream_cases


@pytest.fixture(scope="session")
def toy_device(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A device whose work runs when somebody waits for it, compiled once for all tests."""
    return compile_plugin("toy_device", tmp_path_factory.mktemp("toy"))
