from __future__ import annotations

import numpy as np
import pytest

import rushlight_core as core


@pytest.fixture(autouse=True)
def _fixed_seed():
    core.manual_seed(20261121)


@pytest.fixture
def rng():
    return np.random.default_rng(20261121)
