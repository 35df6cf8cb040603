"""The command for a machine with a GPU: the outcomes of its stages, and the contents of its bundle."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from gpu.suite import ROOT, Stage, run_stage, stages


@pytest.mark.parametrize(
    ("program", "ended"),
    [("print(1)", "passed"), ("raise SystemExit(3)", "failed"), ("import time; time.sleep(60)", "time")],
)
def test_how_a_stage_ends(tmp_path: Path, program: str, ended: str) -> None:
    seen = run_stage(
        Stage("one", (sys.executable, "-c", program), 1.5 if ended == "time" else 60), tmp_path, 100
    )
    assert seen["ended"] == ended
    assert (tmp_path / "one.log").read_text() == ("1\n" if ended == "passed" else "")


def test_a_stage_ends_with_the_whole() -> None:
    assert sum(stage.seconds for stage in stages("python", Path("out"), "", None, 1)[:3]) < 9.5 * 60


def test_stages_run_files_that_are_there() -> None:
    found = stages("python", Path("out"), "a GPU", Path("plugin.so"), 3)
    assert {"resnet50", "gpt", "digits", "sanitizer"} <= {stage.name for stage in found}
    for stage in found:
        named = [word for word in stage.command if word.startswith(("packages/", "tools/"))]
        modules = [word.replace(".", "/") + ".py" for word in stage.command if word.startswith("gpu.")]
        paths = [ROOT / word for word in named] + [ROOT / "tools" / module for module in modules]
        assert paths
        assert all(path.exists() for path in paths), stage.name
