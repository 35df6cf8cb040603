import sys
from pathlib import Path

# The tools, and the modules that tests give them to work on.
sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]
