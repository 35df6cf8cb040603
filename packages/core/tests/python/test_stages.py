"""The Python interface of stages: a tracer, in a separate process because a stage has only one provider at a time."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rushlight_core as core
from rushlight_core.seams import stages

TRACER = """
import rushlight_core as core
from rushlight_core.seams.stages import go_on, provide_stage, stage_off, stage_on, withdraw_stage

seen = []

def trace(name, args, rest):
    seen.append((name, args))
    if name == "exp":
        raise KeyError("mine")
    if name == "sin":
        return "no tensor"
    return go_on(rest, name, *args)

x = core.ones(2, 3)
with stage_on("tracer"):
    x + 1  # no provider: passes through
provide_stage("tracer", trace)
x + 1
assert not seen  # nobody asks for it
on = stage_on("tracer")
on.__enter__()
y = core.add(x, 2, alpha=3)
assert y.tolist() == [[7.0] * 3] * 2
(name, args), = seen
assert name == "add" and args[0] is x and args[1:] == (2, 3), (name, args)
seen.clear()

values, indices = x.max(1)  # a named tuple's operator, a list, an in-place and a dtype
core.cat([x, x], 0)
x.add_(1)
x.sum(dtype=core.float64)
assert [name for name, _ in seen] == ["max.dim", "cat", "add_", "sum"], seen
assert isinstance(seen[1][1][0], tuple) and len(seen[1][1][0]) == 2
assert seen[3][1][3] is core.float64
seen.clear()

with stage_off("tracer"):
    x + 1
assert not seen

for wrong, error in ((x.exp, KeyError), (x.sin, TypeError)):
    try:
        wrong()
    except error as caught:
        assert "mine" in str(caught) or "sin: the stage's function returned str" in str(caught)
    else:
        raise AssertionError
try:
    go_on(0, "nonsense")
except RuntimeError as caught:
    assert "there is no operator" in str(caught)
else:
    raise AssertionError
try:
    provide_stage("tracer", trace)
except RuntimeError as caught:
    assert "only one at a time" in str(caught)
else:
    raise AssertionError
on.__exit__(None, None, None)
withdraw_stage("tracer")
seen.clear()
with stage_on("tracer"):
    x + 1
assert not seen
provide_stage("tracer", lambda name, args, rest: go_on(rest, name, args[0], args[1], -1))
with stage_on("tracer"):
    difference = core.add(x, x)
assert not difference.any()
print("traced")
"""


def test_a_tracer_sees_every_call() -> None:
    run = subprocess.run([sys.executable, "-c", TRACER], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "traced\n"


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="name of a stage"):
        stages.provide_stage("nonsense", print)
    with pytest.raises(TypeError, match="must be callable"):
        stages.provide_stage("batch", 3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="'tracer' has no provider that is written in Python"):
        stages.withdraw_stage("tracer")
    with pytest.raises(RuntimeError, match=r"call provide_state\(\) first"):
        stages.get_state(core.ones(1))
