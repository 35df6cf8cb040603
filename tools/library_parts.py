"""Print the sizes of the parts of librushlight.so by subject: `python tools/library_parts.py BUILD`.

BUILD is core's build folder. The library is linked again with a map, which contains the number of bytes from each object
file. An object belongs to the folder of its source; kernels that are compiled for several instruction sets are counted
separately.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

LIBRARY = "rushlight_core/lib/librushlight.so"
# An input section with its address, size and object; a long name is on a separate line before it.
_SECTION = re.compile(r"^ (\.\S+)?\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)\s+(\S+)$")
_LINKERS = (".rela", ".dyn", ".gnu.", ".hash", ".note", ".got", ".plt", ".eh_frame_hdr")
_OBJECT = re.compile(r"CMakeFiles/(\w+)\.dir/(?:\./)?(?:src/)?(.+)/[^/]+\.o$")


def parts(lines: Iterable[str]) -> Counter[str]:
    """Return the bytes of the library by subject, from a map of GNU ld, without the linker's own tables."""
    found: Counter[str] = Counter()
    mapped, name = False, ""
    for line in lines:
        mapped = mapped or line.startswith("Linker script and memory map")
        if re.match(r"^ ?\.", line):
            name = line.split()[0]
        section = _SECTION.match(line.rstrip("\n")) if mapped else None
        # Discarded sections and debug information have the address 0, and zeros are not in the file.
        if section and int(section[2], 16) and not name.startswith((*_LINKERS, ".bss", ".tbss")):
            found[subject(section[4])] += int(section[3], 16)
    return found


def subject(file: str) -> str:
    """Return the folder of an object's source, with the instruction set if there are several."""
    match = _OBJECT.search(file)
    if match is None:
        return "system libraries"
    target, folder = match.groups()
    isa = target.removeprefix("rushlight").lstrip("_")
    return f"{folder}, {isa}" if isa else folder


def main(folder: str) -> None:
    """Print megabytes by subject, the largest first."""
    commands = subprocess.run(
        ["ninja", "-t", "commands", LIBRARY], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary, "library.so")
        link = commands.splitlines()[-1].replace(f"-o {LIBRARY}", f"-o {made} -Wl,-Map={made}.map")
        subprocess.run(link, shell=True, cwd=folder, check=True)
        with open(f"{made}.map") as lines:
            found = parts(lines)
        subprocess.run(["strip", str(made)], check=True)
        whole = made.stat().st_size
    found["tables of the linker"] = whole - sum(found.values())
    for name, size in found.most_common():
        print(f"{size / 1e6:8.3f} MB  {name}")
    print(f"{whole / 1e6:8.3f} MB  in total")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
