"""The list of packages that `nox -s compat` tries, against the versions that it installs."""

from __future__ import annotations

from pathlib import Path

from compat import cases
from packaging.requirements import Requirement


def test_every_package_is_pinned() -> None:
    text = Path(cases.__file__).with_name("requirements.txt").read_text()
    pins = [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]
    assert all([mark.operator for mark in pin.specifier] == ["=="] for pin in pins)
    names = {pin.name.lower().replace("-", "_") for pin in pins}
    assert len(names) == len(pins)
    assert set(cases.CASES) <= names
    assert len(cases.CASES) == 12
    assert not names & {"torch", "rushlight"}  # PyTorch is in one of the two environments only
