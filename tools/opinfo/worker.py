"""A worker of the comparison: `python -m opinfo.worker NOTE`, see `isolation`."""

from __future__ import annotations

import resource
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opinfo.comparison import Comparison
from opinfo.isolation import work

MEMORY = 8 << 30  # bytes of memory that a worker may use


def main() -> None:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    import rushlight

    for library in (torch, rushlight):
        library.set_num_threads(1)
    entries = {entry.formatted_name: entry for entry in op_db}
    comparison = Comparison(torch, rushlight)

    def compare(name: str, note: Callable[[str], None]) -> dict[str, Any]:
        comparison.note = note
        try:
            return comparison.row(entries[name]).as_json()
        except Exception:  # an error of the comparison itself
            return {"crash": f"the comparison fails: {traceback.format_exc()}"}

    work(compare, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
