"""Open text files, which may be compressed."""

from __future__ import annotations

import gzip
from typing import TextIO, cast


def open_text(path: str, mode: str = "w") -> TextIO:
    """Open a file of UTF-8 text for reading ("r") or writing ("w"). The file is compressed if the path ends with .gz."""
    if str(path).endswith(".gz"):
        return cast(TextIO, gzip.open(path, mode + "t", encoding="utf-8", compresslevel=5))
    return cast(TextIO, open(path, mode, encoding="utf-8"))
