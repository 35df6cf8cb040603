"""Sizes by subject, from a linker's map."""

from __future__ import annotations

import library_parts

MAP = """\
Discarded input sections

 .text._ZN1aE   0x0000000000000000     0x1000 CMakeFiles/rushlight.dir/src/ops/rules/a.cpp.o

Linker script and memory map

.rela.dyn       0x0000000000000100      0x300
 .rela.dyn      0x0000000000000100      0x300 /usr/lib/crti.o
.text           0x0000000000001000      0x123
 .text          0x0000000000001000       0x10 CMakeFiles/rushlight.dir/src/ops/rules/a.cpp.o
 .text._ZN1bE   0x0000000000001010        0x4 CMakeFiles/rushlight.dir/src/ops/rules/b.cpp.o
 .text._ZN26averylongnameofafunctionE
                0x0000000000001020       0x20 CMakeFiles/rushlight_avx2.dir/./generated/kernels/c.cpp.o
 .text          0x0000000000001040        0x8 /usr/lib/gcc/libgcc.a(x.o)
.bss            0x0000000000002000      0x500
 .bss           0x0000000000002000      0x500 CMakeFiles/rushlight.dir/src/ops/rules/a.cpp.o
 .debug_info    0x0000000000000000     0x9999 CMakeFiles/rushlight.dir/src/ops/rules/a.cpp.o
"""


def test_sections_of_the_file_are_counted_by_folder_and_instruction_set() -> None:
    found = library_parts.parts(MAP.splitlines(keepends=True))
    assert found == {"ops/rules": 0x14, "generated/kernels, avx2": 0x20, "system libraries": 8}
