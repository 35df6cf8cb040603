"""Run a C++ program after checking that it loads neither Python nor a vendor's library: `check_embed.py <program>`.

Core opens oneDNN when a convolution or a large product first needs it, so a linked program starts without it.
"""

from __future__ import annotations

import subprocess
import sys


def main(program: str) -> int:
    libraries = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    print(libraries, end="")
    unwanted = [
        line.strip()
        for line in libraries.splitlines()
        if "libpython" in line or "dnnl" in line or "onednn" in line
    ]
    missing = [line.strip() for line in libraries.splitlines() if "not found" in line]
    if unwanted or missing:
        print(
            "the program needs libraries that it must not need, or lacks libraries that it needs:",
            *unwanted,
            *missing,
            sep="\n  ",
        )
        return 1
    if "librushlight.so" not in libraries or "librushlight_autograd.so" not in libraries:
        print("the program was not linked against librushlight.so and librushlight_autograd.so")
        return 1
    return subprocess.run([program]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
