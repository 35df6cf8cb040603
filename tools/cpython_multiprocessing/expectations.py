"""The tests of CPython that are left out or sampled, with reasons. Every entry is printed at the end of a run."""

from __future__ import annotations

# Kinds of tests, by their mixin. `processes` and classes without a kind test rushlight.
OTHER_KINDS = {
    "WithManager": "managers are the standard module's, and so are their queues and pools",
    "WithThreads": "multiprocessing.dummy is the standard module's",
}

# Names of classes and tests that are left out, and the reasons.
LEFT_OUT: dict[str, str] = {
    "WithProcessesTestQueue.test_queue_feeder_donot_stop_onexc": (
        "an object that cannot be pickled raises in put, not in a thread (docs/differences.md)"
    ),
    "_TestImportStar": "the test imports the files of the package's folder under the standard names",
}

# Tests that are run with spawn and forkserver without `--whole`, since each process starts an interpreter.
SAMPLED = (
    "WithProcessesTestProcess",
    "WithProcessesTestQueue",
    "WithProcessesTestPicklingConnections",
    "WithProcessesTestPoolWorkerErrors",
    "TestSimpleQueue",
    "TestStartMethod",
    "TestCloseFds",
)
