"""Run CPython's own tests of `multiprocessing` on `rushlight_multiprocessing`: `nox -s cpython-tests`."""
