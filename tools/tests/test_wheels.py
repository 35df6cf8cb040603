"""The conditions under which a wheel is built again."""

from __future__ import annotations

from pathlib import Path

import pytest
from nox_support import wheels
from nox_support.graph import Graph

PYPROJECT = """
[build-system]
requires = [{requires}]
build-backend = "scikit_build_core.build"

[project]
name = "demo-{short}"
version = "0.1.0"
dependencies = [{requires}]
"""


@pytest.fixture
def keys(tmp_path: Path):
    """Write a file in a repository in which `engine` is compiled against `base`, and return the keys of both."""

    def write(file: str, text: str) -> dict[str, str]:
        path = tmp_path / "packages" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        graph = Graph(tmp_path)
        builder = wheels.Builder(graph, "native")
        return {package.short: builder._key(package) for package in graph.packages.values()}

    write("base/pyproject.toml", PYPROJECT.format(short="base", requires=""))
    write("engine/pyproject.toml", PYPROJECT.format(short="engine", requires='"demo-base==0.1.*"'))
    write("base/include/base.h", "int f();")
    return write


@pytest.mark.parametrize(
    ("file", "rebuilt"),
    [
        ("base/src/base.cpp", {"base"}),
        ("base/include/base.h", {"base", "engine"}),
        ("base/ops/new.yaml", {"base", "engine"}),
        ("base/tests/test_base.py", set()),
        ("base/src/__pycache__/x.pyc", set()),
        ("engine/src/engine.cpp", {"engine"}),
    ],
)
def test_a_change_rebuilds_what_can_see_it(keys, file: str, rebuilt: set[str]) -> None:
    before = keys("base/README.md", "the same")
    after = keys(file, "changed")
    assert {short for short in before if before[short] != after[short]} == rebuilt


def test_variants_do_not_share_wheels() -> None:
    graph = Graph()
    outputs = {wheels.Builder(graph, variant).output for variant in wheels.VARIANTS}
    assert len(outputs) == len(wheels.VARIANTS)


def test_every_package_has_a_budget() -> None:
    graph = Graph()
    budget = wheels.budgets(graph)
    assert set(graph.packages) <= set(budget)
    assert sum(budget.values()) <= 2 * 12 * 60  # 12 minutes on two cores
