"""Run one fault in one library, `python -m faults.child LIBRARY FAULT`, and print the outcome."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback

from faults.registry import library, load


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def main() -> None:
    lib = library(sys.argv[1])
    chosen = load()[sys.argv[2]]
    parent = os.getpid()
    before = _descriptors()
    error = ""
    good = None
    seconds = None
    print(json.dumps({"started": True}), flush=True)
    begun = time.monotonic()
    try:
        good = chosen.run(lib)
    except BaseException as raised:
        text = "".join(traceback.format_exception_only(raised))
        causes = "".join(traceback.format_exception(raised)) if raised.__cause__ else ""
        error = f"{type(raised).__name__}: {text} {causes}"
        seconds = time.monotonic() - begun  # freeing the iterator with the error may take long
    if os.getpid() != parent:
        os._exit(0)  # this is a process that the fault has forked
    if seconds is None:
        seconds = time.monotonic() - begun
    if "begun" in lib.report:
        seconds = lib.report["ended"] - lib.report["begun"]
    gc.collect()
    result = {"good": good, "error": error, "seconds": seconds, "descriptors": _descriptors() - before}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
