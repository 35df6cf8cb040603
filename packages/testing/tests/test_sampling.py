"""The pytest plug-in that runs a part of the generated tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest

@pytest.mark.parametrize("n", range(100))
def test_case(n):
    pass

def test_alone():
    pass
"""


def test_one_case_in_n_is_run_and_all_other_tests(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def ran(every: int) -> set[str]:
        command = [sys.executable, "-P", "-m", "pytest", "-v", "-p", "no:cacheprovider"]
        options = ["-p", "rushlight_testing.sampling", "--every-case", str(every)]
        done = subprocess.run(
            [*command, *options, "test_some.py"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return {line.split()[0] for line in done.stdout.splitlines() if " PASSED" in line}

    assert len(ran(1)) == 101
    half = ran(2)
    assert half == ran(2)
    assert 30 < len(half) < 72
    assert "test_some.py::test_alone" in half
