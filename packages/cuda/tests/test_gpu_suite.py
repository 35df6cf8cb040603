"""The stages of `gpu.suite`, which need a GPU otherwise, in their short form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# The other stages run tests that take long, and the stage `samples` rewrites a file in docs/.
STAGES = ("first-steps", "queueing", "resnet50", "gpt", "digits", "sanitizer")


def test_stages_pass(plugin: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "gpu.suite", "--plugin", str(plugin), "--out", str(tmp_path)]
    done = subprocess.run(
        [*command, "--every", "10", "--only", *STAGES], capture_output=True, text=True, timeout=900,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools")}, cwd=ROOT,
    )  # fmt: skip
    stages = json.loads((tmp_path / "summary.json").read_text())["stages"]
    assert {name: stages[name]["ended"] for name in STAGES} == dict.fromkeys(STAGES, "passed"), done.stdout
    for name in ("resnet50", "gpt", "digits"):
        assert "and 0 later" in (tmp_path / f"{name}.log").read_text()
    assert "queueing, us" in json.loads((tmp_path / "queueing.json").read_text())
