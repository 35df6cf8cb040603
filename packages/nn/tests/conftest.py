from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import rushlight_core as core

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "reference"), str(HERE)]  # for reference_values and fuzz_checkpoints

# Tests must not fail because the machine is busy.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def _fixed_seed():
    core.manual_seed(20261121)


@pytest.fixture
def rng():
    return np.random.default_rng(20261121)
