"""The check of types: its output and its failures, for reports of pyright that are written here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[1] / "check_completeness.py"


def _run(folder: Path, report: object) -> subprocess.CompletedProcess[str]:
    """Return the check with a substitute for pyright that prints `report`."""
    (folder / "report.json").write_text(json.dumps(report))
    pyright = folder / "pyright"
    pyright.write_text(f"#!/bin/sh\ncat {folder / 'report.json'}\n")
    pyright.chmod(0o755)
    return subprocess.run(
        [sys.executable, "-P", str(TOOL), "package"],
        capture_output=True,
        text=True,
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        check=False,
    )


def _report(part: float, **symbol: bool) -> dict[str, object]:
    known = {"name": "package.x", "isTypeKnown": True, "isTypeAmbiguous": False, "diagnostics": []}
    wrong = {"diagnostics": [{"message": "Type is missing\nmore"}]} if symbol else {}
    return {"typeCompleteness": {"completenessScore": part, "symbols": [{**known, **wrong, **symbol}]}}


def test_complete(tmp_path: Path) -> None:
    done = _run(tmp_path, _report(0.991))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "package: 99.10% of the public names have a known type\n"


@pytest.mark.parametrize("symbol", [{"isTypeKnown": False}, {"isTypeAmbiguous": True}])
def test_incomplete(tmp_path: Path, symbol: dict[str, bool]) -> None:
    done = _run(tmp_path, _report(0.98, **symbol))
    assert done.returncode == 1
    assert "  package.x: Type is missing\n" in done.stdout


@pytest.mark.parametrize("report", [{}, {"typeCompleteness": {"completenessScore": 0, "symbols": []}}])
def test_no_package(tmp_path: Path, report: dict[str, object]) -> None:
    done = _run(tmp_path, report)
    assert done.returncode == 1
    assert "pyright --verifytypes package" in done.stderr
