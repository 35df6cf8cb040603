"""Find a LAPACK library. This module is imported when a matrix is first decomposed."""

from __future__ import annotations

import glob
import importlib.util
import os
import sys


def find() -> str:
    """Return the paths of libraries that contain LAPACK, one path per line, in order of preference.

    NumPy's wheels contain a complete OpenBLAS in a folder next to the package `numpy` or inside the package;
    this function finds the folder without importing NumPy. In a conda environment, LAPACK libraries are in
    the folder `lib` of `sys.prefix`.
    """
    paths: list[str] = []
    spec = importlib.util.find_spec("numpy")
    for folder in (spec and spec.submodule_search_locations) or ():
        for beside in (folder.rstrip(os.sep) + ".libs", os.path.join(folder, ".libs")):
            paths += sorted(glob.glob(os.path.join(glob.escape(beside), "lib*openblas*.so*")))
    for name in ("libopenblas.so.0", "liblapack.so.3", "libmkl_rt.so.2"):
        path = os.path.join(sys.prefix, "lib", name)
        if os.path.exists(path):
            paths.append(path)
    return "\n".join(paths)
