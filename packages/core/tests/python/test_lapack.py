"""Which LAPACK is used, when it is loaded, and which state calls leave behind."""

from __future__ import annotations

import ctypes
import glob
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import scipy

import rushlight_core as rl


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_nothing_is_loaded_before_it_is_needed() -> None:
    code = """
import sys, rushlight_core as rl
a = rl.eye(3) * 2
b = a @ a
print(repr(rl._C._lapack_library()), "rushlight_core._lapack" in sys.modules)
rl.linalg.inv(a)
print(len(rl._C._lapack_library()) > 0, "numpy" in sys.modules)
"""
    assert run(code) == "'' False\nTrue False"


@pytest.mark.parametrize("path", ["/no/such/file.so", "libm.so.6"])
def test_a_path_that_is_no_lapack_is_an_error(path: str) -> None:
    code = """
import rushlight_core as rl
try:
    rl.linalg.inv(rl.eye(3))
except RuntimeError as error:
    print(str(error).replace("\\n", " "))
print(rl.eye(2).sum().item())
"""
    text = run(code, RUSHLIGHT_LAPACK=path)
    assert "RUSHLIGHT_LAPACK" in text
    assert path in text
    assert "hint: " in text
    assert text.endswith("2.0")


def test_a_library_with_32_bit_integers() -> None:
    """SciPy contains such a library."""
    folder = Path(scipy.__file__).parent.with_suffix(".libs")
    found = glob.glob(str(folder / "libscipy_openblas-*.so"))
    if not found:
        pytest.skip("this SciPy has no OpenBLAS of its own")
    code = """
import numpy as np, rushlight_core as rl
rng = np.random.default_rng(1)
a, b = rng.normal(size=(2, 5, 5)), rng.normal(size=(2, 5, 3))
s = a + a.swapaxes(-1, -2)
A, B, S = rl.tensor(a), rl.tensor(b), rl.tensor(s)
close = np.testing.assert_allclose
close(rl.linalg.solve(A, B).numpy(), np.linalg.solve(a, b), rtol=1e-9)
close(rl.linalg.inv(A).numpy(), np.linalg.inv(a), rtol=1e-9)
close(rl.linalg.det(A).numpy(), np.linalg.det(a), rtol=1e-9)
close(rl.linalg.eigvalsh(S).numpy(), np.linalg.eigvalsh(s), rtol=1e-9)
close(rl.linalg.svdvals(A).numpy(), np.linalg.svd(a, compute_uv=False), rtol=1e-9)
close(rl.linalg.eigvals(A).numpy(), np.linalg.eigvals(a), rtol=1e-9)
close(rl.linalg.inv(A * (1 + 2j)).numpy(), np.linalg.inv(a * (1 + 2j)), rtol=1e-9)
close(rl.linalg.ldl_solve(*rl.linalg.ldl_factor(S), B).numpy(), np.linalg.solve(s, b), rtol=1e-9)
for driver in ("gels", "gelsy", "gelsd", "gelss"):
    got = rl.linalg.lstsq(A, B, driver=driver)
    close(got.solution.numpy(), np.linalg.solve(a, b), rtol=1e-8)
    assert driver == "gels" or got.rank.tolist() == [5, 5]
assert rl.linalg.inv_ex(rl.zeros(2, 2)).info.item() == 1
assert rl.linalg.cholesky_ex(-rl.eye(2)).info.item() == 1
print("openblas-" in rl._C._lapack_library())
"""
    assert run(code, RUSHLIGHT_LAPACK=found[0]) == "True"


def threads_of_library() -> int | None:
    """Return the number of threads that NumPy's OpenBLAS would use."""
    rl.linalg.inv(rl.eye(2))
    library = ctypes.CDLL(rl._C._lapack_library())
    for name in (
        "scipy_openblas_get_num_threads64_",
        "openblas_get_num_threads64_",
        "openblas_get_num_threads",
    ):
        if hasattr(library, name):
            return int(getattr(library, name)())
    return None


def test_the_number_of_threads_is_put_back() -> None:
    before = threads_of_library()
    large = rl.randn(300, 300, dtype=rl.float64)
    rl.linalg.solve(large, large)
    rl.linalg.inv(rl.eye(4).expand(500, 4, 4))
    with pytest.raises(rl.linalg.LinAlgError):
        rl.linalg.inv(rl.zeros(200, 200))
    assert threads_of_library() == before


def test_several_threads_at_once() -> None:
    before = threads_of_library()
    matrices = [
        rl.randn(n, n, dtype=rl.float64) + 10 * rl.eye(n, dtype=rl.float64) for n in (5, 40, 130, 150) * 4
    ]
    with ThreadPoolExecutor(4) as pool:
        inverses = list(pool.map(rl.linalg.inv, matrices))
    for a, b in zip(matrices, inverses, strict=True):
        assert rl.allclose(a @ b, rl.eye(a.size(0), dtype=rl.float64), atol=1e-9)
    assert threads_of_library() == before


def test_a_forked_child_computes() -> None:
    code = """
import os, rushlight_core as rl
a = rl.randn(200, 200, dtype=rl.float64) + 20 * rl.eye(200, dtype=rl.float64)
wanted = rl.linalg.inv(a)
child = os.fork()
if child == 0:
    os._exit(0 if rl.allclose(rl.linalg.inv(a), wanted) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), rl.allclose(rl.linalg.inv(a), wanted))
"""
    assert run(code) == "0 True"
