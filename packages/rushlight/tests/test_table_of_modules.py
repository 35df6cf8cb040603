"""Modules that `rushlight._table` describes instead of files."""

from __future__ import annotations

import importlib
import importlib.resources
import importlib.util
import inspect
import pickle
import pkgutil
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import _table


@pytest.mark.parametrize("name", sorted(_table.MODULES))
def test_a_module_shows_the_objects_of_the_table(name: str) -> None:
    module = importlib.import_module(f"rushlight.{name}")
    assert module.__name__ == f"rushlight.{name}"
    assert module.__doc__
    for origin, names in _table.MODULES[name].items():
        package = importlib.import_module(origin)
        for word in names.split():
            original, _, alias = word.partition(":")
            for shown in package.__all__ if original == "*" else [original]:
                assert getattr(module, alias or shown) is getattr(package, shown)
                assert shown in module.__all__ or alias or shown.startswith("_")


def test_the_table_repeats_no_file() -> None:
    # A file takes precedence, so a table entry of the same name would never be used.
    root = Path(torch.__file__).parent
    assert not [
        name for name in _table.MODULES if root.joinpath(*name.split(".")).with_suffix(".py").exists()
    ]


def test_modules_are_listed_and_found_like_files() -> None:
    listed = {info.name for info in pkgutil.iter_modules(torch.nn.modules.__path__)}
    assert {"padding", "conv", "utils"} <= listed
    root = {info.name for info in pkgutil.iter_modules(torch.__path__)}
    assert {"linalg", "nn", "hub"} <= root
    assert "padding" not in root
    spec = importlib.util.find_spec("rushlight.nn.modules.padding")
    assert spec is not None
    assert spec.parent == "rushlight.nn.modules"
    assert importlib.resources.files("rushlight.nn.modules").joinpath("utils.py").is_file()


def test_a_missing_module_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"rushlight\.nn\.modules\.paddings"):
        importlib.import_module("rushlight.nn.modules.paddings")
    with pytest.raises(ImportError, match="ZeroPad9d"):
        exec("from rushlight.nn.modules.padding import ZeroPad9d")


def test_inspect_and_reload_work_as_for_files() -> None:
    module = importlib.import_module("rushlight.nn.modules.padding")
    assert inspect.getsourcefile(module) == _table.__file__
    assert "MODULES" in inspect.getsource(module)
    layer = module.ZeroPad2d
    del module.ZeroPad2d
    assert importlib.reload(module) is module
    assert module.ZeroPad2d is layer
    text = pydoc.render_doc(module, renderer=pydoc.plaintext)  # type: ignore[attr-defined]  # typeshed lacks it
    assert "class ZeroPad2d" in text
    assert text.endswith(f"FILE\n    {_table.__file__}\n\n")


def test_names_are_pickled_by_a_path_of_the_table() -> None:
    text = b"crushlight.nn.modules.padding\nZeroPad2d\n."  # in protocol 0: module and name
    assert pickle.loads(text) is torch.nn.ZeroPad2d
    assert pickle.loads(pickle.dumps(torch.nn.functional.relu)) is torch.nn.functional.relu


@pytest.mark.parametrize("name", sorted(_table.MODULES))
def test_stubs_give_the_names_of_the_module(name: str) -> None:
    stub: dict[str, object] = {"__name__": name}
    exec(_table.stub(name), stub)
    module = importlib.import_module(f"rushlight.{name}")
    assert stub["__all__"] == module.__all__
    assert all(stub[shown] is getattr(module, shown) for shown in module.__all__)


def test_importing_the_root_reads_no_table() -> None:
    code = "import sys, rushlight; print([n for n in sys.modules if n.startswith('rushlight.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
