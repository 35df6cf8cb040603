"""The graph of packages, over small repositories made for the purpose."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from nox_support.graph import ROOT, Graph, requirement_name


def add_package(
    root: Path, short: str, *, needs: str = "", builds_with: str = "", tests_with: str = ""
) -> Path:
    def listed(names: str) -> str:
        return ", ".join(f'"demo-{name}==0.1.*"' for name in names.split())

    folder = root / "packages" / short
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(
        f"""
[build-system]
requires = ["hatchling", {listed(builds_with)}]
build-backend = "hatchling.build"

[project]
name = "demo-{short}"
version = "0.1.0"
dependencies = ["numpy>=1", {listed(needs)}]

[project.optional-dependencies]
test = ["pytest", {listed(tests_with)}]
"""
    )
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    add_package(tmp_path, "app", needs="engine layers")
    add_package(tmp_path, "base", tests_with="kit")
    add_package(tmp_path, "engine", needs="base", builds_with="base")
    add_package(tmp_path, "kit", needs="base")
    add_package(tmp_path, "layers", needs="base")
    return tmp_path


def shorts(packages) -> list[str]:
    return [package.short for package in packages]


@pytest.mark.parametrize(
    "text", ["Demo_base", "demo-base[test]==0.1.*", "demo.base >= 1 ; python_version > '3'"]
)
def test_requirement_names_are_normalised(text: str) -> None:
    assert requirement_name(text) == "demo-base"


def test_packages_follow_what_they_need(repository: Path) -> None:
    order = list(Graph(repository).packages)
    assert sorted(order) == ["app", "base", "engine", "kit", "layers"]
    assert order[0] == "base"
    assert order[-1] == "app" or order.index("app") > max(order.index("engine"), order.index("layers"))


def test_closure_holds_what_runs_and_nothing_else(repository: Path) -> None:
    graph = Graph(repository)
    assert shorts(graph.closure([graph["layers"]])) == ["base", "layers"]
    assert shorts(graph.closure([graph["base"]])) == ["base"]


def test_an_extra_belongs_to_the_packages_asked_for_only(repository: Path) -> None:
    graph = Graph(repository)
    assert shorts(graph.closure([graph["base"]], "test")) == ["base", "kit"]
    assert shorts(graph.closure([graph["layers"]], "test")) == ["base", "layers"]


def test_packages_apart_are_in_no_order(repository: Path) -> None:
    folder = add_package(repository, "large", needs="base")
    with open(folder / "pyproject.toml", "a") as file:
        file.write("[tool.rushlight]\napart = true\n")
    graph = Graph(repository)
    assert "large" not in graph.packages
    assert list(graph.apart) == ["large"]
    assert shorts(graph.needs(graph.apart["large"])) == ["base"]


def test_a_circle_is_named(tmp_path: Path) -> None:
    add_package(tmp_path, "a", needs="b")
    add_package(tmp_path, "b", needs="a")
    with pytest.raises(ValueError, match="a -> b -> a"):
        Graph(tmp_path)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("packages/layers/src/x.py", {"layers", "app"}),
        ("packages/base/src/x.py", {"app", "base", "engine", "kit", "layers"}),
        ("packages/kit/src/x.py", {"base", "kit"}),  # the tests of base use it
        ("docs/x.py", set()),
        ("noxfile.py", {"app", "base", "engine", "kit", "layers"}),
    ],
)
def test_what_a_change_concerns(repository: Path, file: str, expected: set[str]) -> None:
    git = ["git", "-C", str(repository), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run([*git, *command], check=True)
    path = repository / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    assert Graph(repository).changed_since("HEAD") == expected


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("packages/core/src/ops/functors/x.h", True),
        ("packages/core/src/ops/reducers/x.h", True),
        ("packages/core/src/cuda/kernels/x.cu", True),
        ("packages/core/src/cpu/x.cpp", False),
        ("docs/x.md", False),
    ],
)
def test_what_cuda_compiles(repository: Path, file: str, changed: bool) -> None:
    git = ["git", "-C", str(repository), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run([*git, *command], check=True)
    assert not Graph(repository).kernels_changed_since("HEAD")
    path = repository / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    assert Graph(repository).kernels_changed_since("HEAD") == changed
    for command in (["add", "-A"], ["commit", "-qm", "change"]):
        subprocess.run([*git, *command], check=True)
    assert Graph(repository).kernels_changed_since("HEAD~1") == changed


def test_this_repository_pins_its_parts() -> None:
    graph = Graph(ROOT)
    pins = {requirement_name(text): text for text in graph["rushlight"].dependencies}
    for package in graph.ours(pins):
        assert pins[package.name] == f"{package.name}=={package.pyproject['project']['version']}"
