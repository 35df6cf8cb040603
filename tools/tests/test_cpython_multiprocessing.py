"""The selection of CPython's tests of multiprocessing, and the modules on which they run."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from cpython_multiprocessing import sources
from cpython_multiprocessing.expectations import SAMPLED


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory: pytest.TempPathFactory):
    """Return the function that rewrites the source of the tests. Its module needs CPython's tests and our package."""
    file = Path(sources.__file__).with_name("substituted.py")
    tree = ast.parse(file.read_text())
    tree.body = [
        node for node in tree.body if not isinstance(node, ast.Expr) or isinstance(node.value, ast.Constant)
    ]
    names: dict = {}
    exec(compile(tree, str(file), "exec"), names)
    return lambda source: ast.unparse(names["_Substitution"]().visit(ast.parse(source)))


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("import multiprocessing", "import rushlight_multiprocessing as multiprocessing"),
        ("import multiprocessing as mp", "import rushlight_multiprocessing as mp"),
        (
            "import os, multiprocessing.pool",
            "import os\nimport multiprocessing.pool\nimport rushlight_multiprocessing as multiprocessing",
        ),
        ("import multiprocessing.pool as p", "import multiprocessing.pool as p"),
        ("from multiprocessing import util", "from rushlight_multiprocessing import util"),
        ("from multiprocessing.pool import Pool", "from multiprocessing.pool import Pool"),
        ("import test.support", "import test.support"),
    ],
)
def test_imports_are_rewritten(rewritten, source: str, result: str) -> None:
    assert rewritten(source) == result


def test_without_tests_the_reason_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_file", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))  # without apt-get
    with pytest.raises(sources.Missing, match=r"apt-get cannot be run"):
        sources.find(tmp_path / "folder")
    monkeypatch.setattr(
        subprocess,
        "run",
        lambda command, **_: subprocess.CompletedProcess(command, 100, "", "E: no network\n"),
    )
    with pytest.raises(sources.Missing, match=r"apt-get download of libpython3.* failed: E: no network"):
        sources.find(tmp_path / "folder")


def test_the_package_is_found_beside_the_interpreters_modules(tmp_path: Path) -> None:
    folder = tmp_path / "usr" / "lib" / f"python3.{sys.version_info.minor}" / "test"
    folder.mkdir(parents=True)
    (folder / "only_in_the_package.py").write_text("")
    code = (
        "import sys; from pathlib import Path; from cpython_multiprocessing import sources\n"
        "sources.extend(Path(sys.argv[1])); import test.only_in_the_package"
    )
    tools = str(Path(sources.__file__).parents[1])
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env={"PYTHONPATH": tools})


def test_samples_are_names_of_classes() -> None:
    assert all("Test" in name and name.isidentifier() for name in SAMPLED)
