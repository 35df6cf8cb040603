import random
import sys
from pathlib import Path

import pytest

pytest.register_assert_rewrite("rushlight_testing.conformance")
sys.path.insert(0, str(Path(__file__).parent))  # the folder of autograd_samples


@pytest.fixture(autouse=True)
def _same_numbers_every_run() -> None:
    random.seed(0)
