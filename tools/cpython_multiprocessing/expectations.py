"""The tests of CPython that are left out or sampled, with reasons. Every entry is printed at the end of a run."""

from __future__ import annotations

# Kinds of tests, by the mixin that they are made with: `processes` are ours, and so are classes without a kind.
OTHER_KINDS = {
    "WithManager": "managers are the standard module's, and so are their queues and pools",
    "WithThreads": "multiprocessing.dummy is the standard module's",
}

# Classes and tests by name, and the reason.
LEFT_OUT: dict[str, str] = {
    "WithProcessesTestQueue.test_queue_feeder_donot_stop_onexc": (
        "an object that cannot be pickled raises in put, not in a thread (docs/differences.md)"
    ),
    "_TestImportStar": "the test imports the files of the package's folder under the standard names",
}

# What is run with spawn and forkserver, where each process starts an interpreter, unless `--whole` is given.
SAMPLED = (
    "WithProcessesTestProcess",
    "WithProcessesTestQueue",
    "WithProcessesTestPicklingConnections",
    "WithProcessesTestPoolWorkerErrors",
    "TestSimpleQueue",
    "TestStartMethod",
    "TestCloseFds",
)
