import sys
from pathlib import Path

# The path of the tools, and of the modules on which tests run them.
sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]
