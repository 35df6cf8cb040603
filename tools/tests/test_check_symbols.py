"""Each rule about built libraries, tested on a library that breaks it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import check_symbols
import pytest

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

WIDE = 'void {name}(float* x) {{ asm volatile("vmovups %%zmm1, (%0)" :: "r"(x) : "memory"); }}'


@pytest.fixture
def problems(tmp_path: Path):
    def build(source: str, name: str = "librushlight.so", *options: str, native: bool = False) -> list[str]:
        library = tmp_path / name
        (tmp_path / "x.cpp").write_text(source)
        command = [
            "g++",
            "-shared",
            "-fPIC",
            "-mavx512f",
            "-o",
            str(library),
            str(tmp_path / "x.cpp"),
            *options,
        ]
        subprocess.run(command, check=True)
        return list(check_symbols.problems(library, native))

    return build


def test_a_clean_library_has_none(problems) -> None:
    assert (
        problems("namespace rushlight { struct A { virtual ~A(); }; A::~A() {} thread_local int t = 1; }")
        == []
    )


def test_python_is_needed(problems) -> None:
    (found,) = problems('extern "C" void PyErr_Clear(); namespace rushlight { void f() { PyErr_Clear(); } }')
    assert "PyErr_Clear" in found


def test_an_extension_may_need_python(problems) -> None:
    assert problems('extern "C" void PyErr_Clear(); void f() { PyErr_Clear(); }', "_C.so") == []


def test_a_foreign_name_is_exported(problems) -> None:
    (found,) = problems("namespace other { void f() {} }")
    assert "_ZN5other1fEv" in found


def test_openmp_is_linked_outside_core(problems) -> None:
    source = """
        namespace rushlight {
        int f() {
            int s = 0;
        #pragma omp parallel for
            for (int i = 0; i < 9; ++i) s = i;
            return s;
        }
        }
    """
    assert problems(source, "librushlight.so", "-fopenmp") == []
    (found,) = problems(source, "librushlight_autograd.so", "-fopenmp")
    assert "libgomp" in found


def test_wide_registers_stay_behind_the_choice_of_cpu(problems) -> None:
    chosen = f"namespace rushlight::avx512 {{ {WIDE.format(name='f')} }}"
    shared = f"namespace rushlight {{ {WIDE.format(name='g')} }}"
    assert problems(chosen) == []
    (found,) = problems(shared)
    assert "rushlight::g" in found
    assert problems(shared, native=True) == []


def test_no_library_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_symbols.main([str(tmp_path)]) == 1
    assert "no library" in capsys.readouterr().out


def test_the_check_of_the_processor_runs_on_any(problems) -> None:
    # The fixture compiles for AVX-512, so that a sum of numbers uses AVX.
    source = "float f(float a, float b) { return a + b; }"
    assert problems(source, "_C.so", native=True) == []
    (found,) = problems(source, "_bootstrap.so", native=True)
    assert "vaddss" in found
    assert problems(source, "_bootstrap.so", "-march=x86-64", "-mno-avx", native=True) == []
