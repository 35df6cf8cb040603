"""The program of binding-a-language.md: compiled against the installed core, and run."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "binding-a-language.md"


def test_the_program_adds(tmp_path: Path) -> None:
    program = re.search(r"^```c\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert program
    (tmp_path / "example.c").write_text(program[1])
    core = Path(sysconfig.get_path("platlib")) / "rushlight_core"
    command = ["cc", "-std=c11", "-Wall", "-Werror", "example.c", "-o", "example", f"-I{core}/include"]
    command += [f"-L{core}/lib", "-lrushlight", f"-Wl,-rpath,{core}/lib", "-Wl,--allow-shlib-undefined"]
    for step in (command, ["./example"]):
        ended = subprocess.run(step, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout == "3.5\n"
