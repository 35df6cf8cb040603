"""The fuzzer on rushlight and PyTorch themselves: it finds the planted mistakes, and nothing without them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("rushlight")

import torch
import yaml
from fuzz import operators
from fuzz.__main__ import TABLE
from fuzz.campaign import Campaign
from fuzz.compare import KINDS
from fuzz.processes import Process, importable
from fuzz.program import MODES
from known_differences import read

import rushlight

# A mistake of each kind that rushlight_planted.py plants in rushlight: its operator, and the kind of difference.
PLANTED = {
    "lerp": "values", "hypot": "dtype", "narrow": "alias", "atan2": "gradient", "xlogy": "gradient",
    "logaddexp": "requires_grad", "flip": "raises", "roll": "shape",
}  # fmt: skip
MISSED_VERSION = {"square_": "gradient accepts"}
OTHERS = {"add", "mul", "clone", "exp"}  # what else programs do


def differences(library: str, names: set[str], programs: int) -> set[tuple[str, str]]:
    """Return the operators and the kinds of the groups that a campaign finds."""
    importable(str(Path(__file__).parent))
    found = [op for op in operators.load([rushlight, torch]) if op.name.partition(".")[0] in names]
    known = read(yaml.safe_load(TABLE.read_text()), KINDS, MODES)
    ours, theirs = Process(library, found), Process("torch", found)
    try:
        campaign = Campaign(ours, theirs, 1, known, lambda text: None)
        campaign.run(programs=programs)
    finally:
        ours.close()
        theirs.close()
    return {(call.op, group.kind) for group in campaign.groups.values() for call in group.program.calls}


def test_no_difference_is_found_in_rushlight() -> None:
    assert differences("rushlight", {*PLANTED, "square", *OTHERS}, 700) == set()


def test_each_planted_mistake_is_found() -> None:
    found = differences("rushlight_planted", {*PLANTED, "square", *OTHERS}, 700)
    assert {pair for pair in PLANTED.items() if pair not in found} == set()


def test_a_write_that_no_version_counter_shows_is_found() -> None:
    """The program fails in PyTorch only, as when a formula reads less memory; but in that case the gradients are right."""
    found = differences("rushlight_planted", {"square", "mul"}, 500)
    assert set(MISSED_VERSION.items()) <= found
