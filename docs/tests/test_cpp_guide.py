"""The program of cpp.md: compiled with CMake against the installed packages, and run."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "cpp.md"


def block(language: str) -> str:
    (found,) = re.findall(
        rf"^```{re.escape(language)}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    return str(found)


def test_the_program_trains(tmp_path: Path) -> None:
    (tmp_path / "example.cpp").write_text(block("cpp"))
    (tmp_path / "CMakeLists.txt").write_text(block("cmake"))
    prefix = sysconfig.get_path("platlib")
    for command in (
        ["cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}"],
        ["cmake", "--build", "build"],
        ["build/example"],
    ):
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.startswith("loss ")
