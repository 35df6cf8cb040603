"""CPython's own tests of `multiprocessing`, run on `rushlight_multiprocessing`: `nox -s cpython-multiprocessing`."""
