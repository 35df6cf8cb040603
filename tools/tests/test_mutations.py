"""The list of mutations fits the files, and the program that runs them distinguishes caught and surviving ones."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import run_mutations
from run_mutations import Mutation, failing_test, first_failure, load, main, misfits, outcome, together

MUTATIONS = load()


def test_every_entry_fits_its_file() -> None:
    assert misfits(MUTATIONS) == []


def test_the_list_is_large_and_spread() -> None:
    compiled = [m for m in MUTATIONS if m.compiled]
    assert len(MUTATIONS) - len(compiled) >= 60
    assert len(compiled) >= 20
    assert {m.built_package for m in MUTATIONS} >= {
        "core",
        "autograd",
        "nn",
        "data",
        "multiprocessing",
        "profiler",
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text": "no such text"}, "the text is there 0 times"),
        ({"text": "import"}, "times"),
        ({"file": "packages/nn/no.py"}, "no such file"),
        ({"replacement": MUTATIONS[0].text}, "changes nothing"),
        ({"tests": ["test_no.py"]}, "there is no"),
    ],
)
def test_an_entry_that_does_not_fit_is_an_error(change: dict[str, object], said: str) -> None:
    (wrong,) = misfits([dataclasses.replace(MUTATIONS[0], **change)])  # type: ignore[arg-type]
    assert said in wrong


def test_names_differ() -> None:
    (wrong,) = misfits([MUTATIONS[0], MUTATIONS[0]])
    assert "given twice" in wrong


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with one package, which has one function and one test of it."""
    folder = tmp_path / "packages" / "one"
    (folder / "tests").mkdir(parents=True)
    (folder / "one.py").write_text("def one(x):\n    return x + 1 - 0\n")
    (folder / "tests" / "test_one.py").write_text(
        "import sys\nfrom pathlib import Path\n"
        "sys.path.insert(0, str(Path(__file__).parents[1]))\nsys.dont_write_bytecode = True\n"
        "from one import one\n\ndef test_one():\n    assert one(1) == 2\n"
    )
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").write_text(
        f'#!/bin/sh\nexec {run_mutations.sys.executable} "$@"\n'
    )
    (tmp_path / ".venv" / "bin" / "python").chmod(0o755)
    monkeypatch.setattr(run_mutations, "TREE", tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # half of the time of these runs
    return tmp_path


@pytest.mark.parametrize(
    ("text", "replacement", "what"), [("+ 1", "+ 2", "caught"), ("- 0", "+ 0", "survived")]
)
def test_outcomes(tree: Path, text: str, replacement: str, what: str) -> None:
    before = (tree / "packages/one/one.py").read_text()
    found, output = outcome(Mutation("one", "packages/one/one.py", text, replacement, "one"))
    assert found == what, output
    assert (tree / "packages/one/one.py").read_text() == before
    if what == "caught":
        assert "test_one" in first_failure(output)


def test_the_test_that_noticed_runs_first(tree: Path) -> None:
    """It is enough if this test fails; if it passes, the other tests run."""
    tests = tree / "packages/one/tests"
    (tests / "test_before.py").write_text("def test_before():\n    pass\n")
    mistake = Mutation("one", "packages/one/one.py", "+ 1", "+ 2", "one")
    noticed = failing_test(outcome(mistake)[1])
    assert noticed == "packages/one/tests/test_one.py::test_one"
    found, output = outcome(mistake, noticed)
    assert found == "caught"
    assert "passed" not in output
    found, output = outcome(mistake, "packages/one/tests/test_before.py::test_before")
    assert (found, failing_test(output)) == ("caught", noticed)
    assert "1 failed, 1 passed" in output


def test_tests_run_once_without_a_mistake() -> None:
    one = Mutation("a", "packages/one/one.py", "a", "b", "one", ["test_a.py", "test_b.py"])
    others = [dataclasses.replace(one, tests=["test_b.py", "test_c.py"]), dataclasses.replace(one, only="a")]
    whole, chosen = together([one, *others, others[1]])
    assert whole.tests == ["test_a.py", "test_b.py", "test_c.py"]
    assert chosen == others[1]
    assert together([dataclasses.replace(one, tests=[]), one])[0].tests == []


def test_the_figures_are_printed_by_language(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = [Mutation(text, "packages/one/one.py", text, "", "one") for text in ("+ 1", " - 0")]
    monkeypatch.setattr(run_mutations, "load", lambda: listed)
    monkeypatch.setattr(run_mutations, "ROOT", tree)
    monkeypatch.setattr(run_mutations, "NOTICED", tree / "noticed.json")
    monkeypatch.setattr(run_mutations, "copy_tree", lambda: None)
    (tree / "noxfile.py").write_text("")
    assert main(["--no-baseline"]) == 1
    assert "of 2 in Python: 1 caught, 1 survived, 0 broken; 50% caught" in capsys.readouterr().out
    assert json.loads((tree / "noticed.json").read_text()) == {
        "+ 1": "packages/one/tests/test_one.py::test_one"
    }


CMAKE = """#!/bin/sh
grep -q "syntax error" packages/one/one.cpp && exit 1
cp packages/one/one.cpp packages/one/one.py
"""


@pytest.mark.parametrize(
    ("text", "replacement", "what"),
    [("+ 1", "+ 2", "caught"), ("- 0", "+ 0", "survived"), ("+ 1", "syntax error", "broken")],
)
def test_outcomes_of_what_is_compiled(tree: Path, text: str, replacement: str, what: str) -> None:
    """The compiler of this tree only copies files."""
    (tree / "packages/one/one.cpp").write_text((tree / "packages/one/one.py").read_text())
    (tree / ".nox/py3/build/dev/one").mkdir(parents=True)
    (tree / ".venv/bin/cmake").write_text(CMAKE)
    (tree / ".venv/bin/cmake").chmod(0o755)
    found, output = outcome(Mutation("one", "packages/one/one.cpp", text, replacement, "one"))
    assert found == what, output
    assert run_mutations.build("one")[0]
    assert "+ 1 - 0" in (tree / "packages/one/one.py").read_text()
