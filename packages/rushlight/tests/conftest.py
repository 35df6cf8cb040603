from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rushlight_testing.native import compile_plugin

sys.path.insert(0, str(Path(__file__).parent))  # for random_stream_cases


@pytest.fixture(scope="session")
def toy_device(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the toy device, whose work runs only when a caller waits for it, once for all tests."""
    return compile_plugin("toy_device", tmp_path_factory.mktemp("toy"))
