"""Compare the stubs of the given extension modules with the modules themselves, with mypy's stubtest.

It runs in the environment in which the packages are installed. `stubs_allowlist.txt` lists intended differences, with
reasons. In addition, the signature that `inspect` shows for an operator with several overloads must be that of one overload:
Note [Signatures of builtins].
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from rushlight_core.codegen.loader import load_ops
from rushlight_core.codegen.python_signatures import hidden, names_of, signatures, synonyms


def overloaded() -> list[str]:
    """Return names of functions and methods that have several signatures."""
    found: list[str] = []
    for name, group in names_of(load_ops()).items():
        visible = [op for op in group if not hidden(op)]
        if sum(len(signatures(op, name, False)) for op in visible) > 1:
            found += [name, *synonyms(name, visible)]
    return sorted(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="+", help="import names")
    modules = parser.parse_args().modules
    hand = Path(__file__).with_name("stubs_allowlist.txt")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as generated:
        generated.write("\n".join(rf"rushlight_core\._C\.(Tensor\.)?{name}" for name in overloaded()))
        generated.flush()
        command = [sys.executable, "-m", "mypy.stubtest", *modules, "--allowlist", str(hand)]
        command += ["--allowlist", generated.name, "--ignore-unused-allowlist", "--concise"]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
