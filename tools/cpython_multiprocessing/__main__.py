"""Run CPython's tests of `multiprocessing` on rushlight: `python -m cpython_multiprocessing --method fork`.

The exit code is 1 if a test fails, and 2 if there are no tests to run. The summary lists every test that did not run, with
the reason.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any

from cpython_multiprocessing import sources
from cpython_multiprocessing.expectations import LEFT_OUT, OTHER_KINDS, SAMPLED


class _Result(unittest.TextTestResult):
    """Results with the time that each test took."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seconds: dict[str, float] = {}

    def startTest(self, test: unittest.TestCase) -> None:
        self.begun = time.monotonic()
        super().startTest(test)

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self.seconds[_name(test)] = time.monotonic() - self.begun


def _name(test: unittest.TestCase) -> str:
    return ".".join(test.id().split(".")[-2:])


def _select(
    module: ModuleType, method: str, whole: bool, patterns: list[str]
) -> tuple[unittest.TestSuite, dict[str, str]]:
    """Return the tests to run, and the reason for each that is not run."""
    suite = unittest.TestSuite()
    left_out: dict[str, str] = {}
    for name, case in vars(module).items():
        if not isinstance(case, type) or not issubclass(case, unittest.TestCase):
            continue
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(case):
            assert isinstance(test, unittest.TestCase)
            full = _name(test)
            kind = next((reason for prefix, reason in OTHER_KINDS.items() if name.startswith(prefix)), None)
            reason = LEFT_OUT.get(full) or LEFT_OUT.get(name) or kind
            if reason is None and method != "fork" and not whole and name not in SAMPLED:
                reason = f"{method} is sampled; --whole runs all"
            if patterns and not any(pattern in full for pattern in patterns):
                continue
            if reason is None:
                suite.addTest(test)
            else:
                left_out[full] = reason
    return suite, left_out


def _report(result: _Result, left_out: dict[str, str], method: str, seconds: float) -> None:
    print(f"\n{method}: the slowest tests")
    for name, took in sorted(result.seconds.items(), key=lambda item: -item[1])[:8]:
        print(f"  {took:5.1f} s  {name}")
    print(f"{method}: tests that were not run")
    for reason, count in collections.Counter(left_out.values()).most_common():
        names = [name for name, why in left_out.items() if why == reason]
        listed = names if count <= 3 else sorted({name.split(".")[0] for name in names})
        print(f"  {count:3}  {reason}: {', '.join(listed)}")
    for test, reason in result.skipped:
        print(f"    1  skipped by CPython: {_name(test)}: {reason}")
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    passed = result.testsRun - failed - len(result.skipped)
    print(
        f"{method}: {passed} passed, {failed} failed, {len(result.skipped)} skipped by CPython,"
        f" {len(left_out)} left out, in {seconds:.0f} s"
    )


def _run_parts(jobs: int) -> int:
    """Run each part in a separate process, and print their outputs one after the other."""
    command = [sys.executable, "-P", "-m", "cpython_multiprocessing", *sys.argv[1:]]
    parts = [
        subprocess.Popen(
            [*command, "--part", str(part)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for part in range(jobs)
    ]
    for part in parts:
        print(part.communicate()[0], flush=True)
    return max(part.returncode for part in parts)


def main() -> int:
    parser = argparse.ArgumentParser(prog="cpython_multiprocessing", description=__doc__)
    parser.add_argument("--method", default="fork", choices=["fork", "spawn", "forkserver"])
    parser.add_argument("--whole", action="store_true", help="run all tests also with spawn and forkserver")
    parser.add_argument("--folder", default=".nox/cpython-tests", help="folder for Debian's package")
    parser.add_argument(
        "--jobs", type=int, default=1, help="number of processes that share the tests, which mostly wait"
    )
    parser.add_argument("--part", type=int, help="run this part of --jobs parts only")
    parser.add_argument(
        "--find", action="store_true", help="print where the tests are, or why there are none"
    )
    parser.add_argument("--verbose", action="store_true", help="print each test's name")
    parser.add_argument("patterns", nargs="*", help="run the tests that contain one of these words")
    options = parser.parse_args()
    # A shell that starts this program in the background ignores SIGINT, but the tests send Ctrl-C to themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = Path(options.folder).resolve()
    os.environ["RUSHLIGHT_CPYTHON_TESTS"] = str(folder)
    try:
        file = sources.find(folder)
    except sources.Missing as missing:
        print(f"CPython's tests of multiprocessing were not run: {missing}")
        return 0 if options.find else 2
    if options.find:
        print(file)
        return 0
    if options.jobs > 1 and options.part is None:
        return _run_parts(options.jobs)
    print(f"{options.method}: the tests of {file} with Python {sys.version.split()[0]}")
    os.environ["RUSHLIGHT_CPYTHON_METHOD"] = options.method
    module = importlib.import_module("cpython_multiprocessing.made")
    suite, left_out = _select(module, options.method, options.whole, options.patterns)
    if options.part is not None:
        suite = unittest.TestSuite(list(suite)[options.part :: options.jobs])
        left_out = left_out if options.part == 0 else {}
    set_up, tear_down = module.setUpModule, module.tearDownModule
    begun = time.monotonic()
    set_up()
    try:
        verbosity = 2 if options.verbose else 1
        result = unittest.TextTestRunner(resultclass=_Result, verbosity=verbosity).run(suite)
    finally:
        tear_down()
    assert isinstance(result, _Result)
    _report(result, left_out, options.method, time.monotonic() - begun)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
