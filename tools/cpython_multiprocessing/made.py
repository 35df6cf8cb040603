"""CPython's tests for the start method in RUSHLIGHT_CPYTHON_METHOD. Processes that are started import this module, too."""

import os

from cpython_multiprocessing import substituted

substituted.install_tests_in_module_dict(  # type: ignore[attr-defined]
    globals(), os.environ["RUSHLIGHT_CPYTHON_METHOD"]
)
