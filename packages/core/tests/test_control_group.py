"""Programs in a control group with a memory limit. The kernel ends a program that exceeds the limit.

Root can make groups if the hierarchy is writable. Otherwise these tests are skipped; cpp/test_runtime.cpp tests the same
functions with files that it writes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer's blocks are malloc's and not counted"
)

MIB = 1 << 20
LIMIT = 500 * MIB
# The folder in which groups are made, and the name of the file with the limit, for versions 1 and 2.
HIERARCHIES = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max"),
)


@pytest.fixture(scope="module")
def group():
    """Return a control group whose limit is 500 MiB."""
    for folder, file in HIERARCHIES:
        made = folder / f"rushlight-tests-{os.getpid()}"
        try:
            made.mkdir()
        except OSError:
            continue
        try:
            if not (made / file).exists():
                continue
            (made / file).write_text(str(LIMIT))
            yield made
            return
        except OSError:
            continue
        finally:
            made.rmdir()
    pytest.skip("no control group with a memory limit can be made here")


def outcome(group, program):
    """Run a program in the group, and return its output."""
    # The shell joins the group before Python starts, so all memory of Python counts.
    command = ["/bin/sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', str(group)]
    begin = "import rushlight_core as core\nMIB = 1 << 18  # elements of float32\n"
    text = begin + textwrap.dedent(program)
    done = subprocess.run(
        [*command, sys.executable, "-P", "-c", text], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"ended by {-done.returncode}: {done.stderr}"
    return done.stdout.strip()


def test_a_cache_makes_room_for_another_size(group):
    assert outcome(
        group,
        """
        a = core.ones(300 * MIB)
        del a
        print(core.ones(350 * MIB).sum().item() == 350 * MIB)
        """,
    ) == "True"  # fmt: skip


def test_a_cache_makes_room_for_other_memory_at_once(group):
    # Between small calls, the program allocates other memory much faster than caches normally shrink.
    assert outcome(
        group,
        """
        a = core.ones(300 * MIB)
        del a
        kept = []
        for _ in range(300):
            kept.append(bytes([1]) * (1 << 20))
            core.ones(1000)
        print(len(kept))
        """,
    ) == "300"  # fmt: skip


@pytest.mark.parametrize("elements", [20 << 18, 3 << 17, 1000])
def test_what_does_not_fit_raises(group, elements):
    # The interpreter's memory counts, too, so the group's limit is reached before the allocator's own limit.
    assert outcome(
        group,
        f"""
        memory = bytes([1]) * (400 << 20)
        kept = []
        try:
            while True:
                kept.append(core.ones({elements}))
        except core.OutOfMemoryError as error:
            text = str(error)
        kept.clear()
        print("left in the control group" in text, core.ones(MIB).sum().item() == MIB)
        """,
    ) == "True True"  # fmt: skip
