"""A sample of `nox -s fuzz-checkpoints`, and tests that the fuzzer detects violations."""

from __future__ import annotations

import pytest
from fuzz_checkpoints import harness
from fuzz_checkpoints.__main__ import campaign

from rushlight_nn.serialization import load


def test_a_sample():
    counts, broken = campaign(3000, seed=0)
    assert not broken, dict(counts)
    assert counts["read"] > 30
    assert counts["refused"] > 2000


def test_kept_inputs():
    for data in harness.seeds():
        harness.check(data)


def test_violations_are_noticed(monkeypatch):
    data = b"\0" + b"x" * 1000

    def takes_memory(file, map_location):
        assert bytearray(30 << 20).count(0) == 30 << 20
        return load(file)

    monkeypatch.setattr(harness, "load", takes_memory)
    with pytest.raises(harness.Violation, match="MB of memory"):
        harness.check(data)
    monkeypatch.setattr(harness, "load", load)
    monkeypatch.setattr(harness, "SECONDS", -1.0)
    with pytest.raises(harness.Violation, match="took"):
        harness.check(data)

    def fails(file, map_location):
        raise KeyError("a name")

    monkeypatch.setattr(harness, "load", fails)
    counts, broken = campaign_without_seeds(monkeypatch)
    assert counts["KeyError: 'a name'"] == len(broken) == 5


def campaign_without_seeds(monkeypatch):
    from fuzz_checkpoints import __main__ as program

    monkeypatch.setattr(program, "seeds", lambda: [b"\0abc"])
    monkeypatch.setattr(program, "check", lambda data, measured=True: measured and harness.check(data))
    return program.campaign(5, seed=0)
