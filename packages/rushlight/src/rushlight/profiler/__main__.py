"""Run `python -m rushlight.profiler script.py [arguments]`, implemented in rushlight_profiler.__main__."""

import sys

from rushlight_profiler.__main__ import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
