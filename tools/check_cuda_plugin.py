"""Check what the installed rushlight_cuda reports, and how long the query takes: `python tools/check_cuda_plugin.py`.

On a machine without a GPU the plug-in must load, report what is missing, and not affect anything else.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import rushlight_core as core


def main() -> int:
    started = time.perf_counter()
    try:
        x = core.ones(4, device="cuda")
    except RuntimeError as error:
        print(
            f"the first use of a device raises after {1e3 * (time.perf_counter() - started):.1f} ms: {error}"
        )
    else:
        print(f"a device is there: {(x + x).tolist()}")
        return 0
    found = importlib.util.find_spec("rushlight_cuda")
    if found is None or found.origin is None:
        print("rushlight_cuda is not installed")
        return 1
    plugin = Path(found.origin).with_name("librushlight_cuda.so")
    try:
        core.devices.load_backend(plugin)
    except RuntimeError as error:
        print(f"the plug-in loads, and says: {error}")
        return 0 if "probing the machine failed" in str(error) else 1
    return 1


if __name__ == "__main__":
    sys.exit(main())
