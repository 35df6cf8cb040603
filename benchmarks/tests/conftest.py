"""Make `benchmarks` importable however the tests are started: it is a folder, not an installed package."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
