"""The cost of the import, the names that it provides, and its error messages."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight_core as core
from rushlight_core import _load


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_no_heavy_module_is_imported() -> None:
    before = set(run("import sys; print(*sys.modules)").split())
    after = set(run("import sys, rushlight_core; print(*sys.modules)").split())
    new = {name.partition(".")[0] for name in after - before}
    assert new <= {"rushlight_core", "__future__"}, new


def test_numpy_is_imported_when_it_is_first_needed() -> None:
    code = "import sys, rushlight_core as c; t = c.tensor([1.0]); a = 'numpy' in sys.modules; t.numpy()"
    assert run(code + "; print(a, 'numpy' in sys.modules)") == "False True"


def test_all_names_exist() -> None:
    missing = [name for name in core.__all__ if not hasattr(core, name)]
    assert missing == []
    assert {"Tensor", "tensor", "add", "no_grad", "float32", "from_numpy", "finfo"} <= set(core.__all__)
    assert not [name for name in core.__all__ if name.startswith("_")]


def test_version_is_that_of_the_library() -> None:
    assert core.__version__ == core._C.__version__
    assert core._C._abi.startswith(core.__version__ + "+")


def test_unknown_names_raise_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_operator'"):
        core.no_such_operator


def test_a_source_tree_that_was_not_built_is_named(tmp_path: Path) -> None:
    text = _load._diagnose("rushlight_core", [str(tmp_path)], None, ImportError("no"))
    assert "was not built" in text
    assert str(tmp_path) in text


def test_a_module_for_another_python_is_named(tmp_path: Path) -> None:
    (tmp_path / "_C.cpython-27-x86_64-linux-gnu.so").touch()
    text = _load._diagnose("rushlight_core", [str(tmp_path)], None, ImportError("no"))
    assert "another version of Python" in text
    assert "cpython-27" in text


def test_a_damaged_library_is_diagnosed(tmp_path: Path) -> None:
    package = tmp_path / "rushlight_core"
    (package / "lib").mkdir(parents=True)
    source = Path(core.__file__).parent
    for path in source.glob("*.py"):
        (package / path.name).write_text(path.read_text())
    for native in (Path(core._C.__file__), Path(core._bootstrap.__file__)):
        (package / native.name).write_bytes(native.read_bytes())
    (package / "lib" / "librushlight.so").write_bytes(b"not a library")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import rushlight_core"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "ImportError: rushlight_core could not be imported" in done.stderr
    assert "librushlight.so" in done.stderr


def test_a_second_copy_is_refused(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("rushlight_core")
    assert spec is not None
    copy = tmp_path / "librushlight.so"
    copy.write_bytes((Path(core._C.__file__).parent / "lib" / "librushlight.so").read_bytes())
    code = f"import ctypes; ctypes.CDLL({str(copy)!r}); import rushlight_core"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "another copy of librushlight.so is loaded" in done.stderr
    assert str(copy) in done.stderr
    assert done.stderr.count("hint:") == 1


def test_a_library_that_cannot_be_loaded_raises_os_error() -> None:
    for path in ("/no/such/library.so", "/no/such/\udcff.so"):
        with pytest.raises(OSError, match=r"library|such"):
            core._bootstrap.dlopen(path)


def test_the_processor_is_checked_before_anything_else_is_loaded() -> None:
    # The answer for a processor without AVX2, such as that of `qemu-x86_64 -cpu Nehalem`.
    code = """
import sys, types
answer = types.ModuleType("rushlight_core._bootstrap")
answer.missing = lambda: "AVX2 and FMA (x86-64-v3)"
sys.modules["rushlight_core._bootstrap"] = answer
try:
    import rushlight_core
except ImportError as error:
    print(error)
print("librushlight" in open("/proc/self/maps").read())
"""
    wanted = "rushlight_core could not be imported: it needs a processor with AVX2 and FMA (x86-64-v3)"
    assert run(code).splitlines() == [wanted, "False"]


def test_a_misspelt_name_is_answered_with_one_that_exists() -> None:
    assert len(dir(core)) > 750  # more names than Python itself searches
    with pytest.raises(AttributeError) as caught:
        core.reulu
    assert str(caught.value) == "module 'rushlight_core' has no attribute 'reulu'. Did you mean: 'relu'?"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(AttributeError, match="Did you mean: 'einsum'"):  # einsum is loaded at first use
        core.einsumm
    with pytest.raises(AttributeError) as caught:
        core.xylophone
    assert str(caught.value) == "module 'rushlight_core' has no attribute 'xylophone'"
